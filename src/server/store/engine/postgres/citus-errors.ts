// Errors of Citus workers, as the coordinator reports them.

/** Citus adds this to the context of every error that a worker returned. */
const CONTEXT = /while executing command on /
/** Errors of the coordinator itself about a worker. Most have the code of an internal error. */
const MESSAGE = new RegExp(
  '^(connection to the remote node|connection establishment for node|' +
    'could not establish any connections to the node|could not commit transaction for shard|' +
    'failure on connection marked as essential|failed to prepare transaction)',
)

/** Whether only a worker failed, and not the connection to the coordinator or its storage. */
export function isWorkerError(error: unknown): boolean {
  const { message = '', where = '' } = error as { message?: string; where?: string }
  return CONTEXT.test(where) || MESSAGE.test(message)
}

/** A shard was moved or split after the statement was planned. A retry finds its new place. */
export const isShardMoved = (error: unknown): boolean =>
  /^could not find valid entry for shard /.test((error as { message?: string }).message ?? '')
