// Limits how many connections writes can hold while commits hang. With synchronous replication and no
// standby, PostgreSQL serves reads, but a commit waits for a standby, and its session stays even if the
// client disconnects.
import type pg from 'pg'
import { CommitsBlocked, CommitUnconfirmed, isConnectionLost, isUnavailable, Overloaded } from '../errors.ts'

/** Less than the size of the pool: the other connections are for reads. */
const CONCURRENT_MAX = 7
const QUEUE_TIMEOUT_MS = 3_000
/** After this, a commit may hang. A probe then checks whether all commits do. */
const SLOW_AFTER_MS = 1_500
const PROBE_TIMEOUT_MS = 1_000
const PROBE_RETRY_MS = 250
/** A probe has no query timeout: each one that timed out would leave a waiting session on the server. */
const PROBE_OPTIONS = {
  application_name: 'adit commit probe',
  max: 1,
  connectionTimeoutMillis: 3_000,
  keepAliveInitialDelayMillis: 10_000,
}
/** A transaction that writes WAL, so its commit waits like that of any write. It changes no table. */
const PROBE = `select pg_logical_emit_message(true, 'adit', '')`
/** Its commit waits for a standby also if the operator has chosen that those of writes do not. */
const CONFIRMATION = `${PROBE}, set_config('synchronous_commit', 'on', true)`

/** The routine of the warning that a commit returned although no standby has confirmed it. */
const CANCELED_WAIT_ROUTINE = 'SyncRepWaitForLSN'

export type CommitGate = ReturnType<typeof createCommitGate>

export function createCommitGate(
  openPool: (options: pg.PoolConfig) => pg.Pool,
  onBlocked: (isBlocked: boolean) => void,
) {
  const probes = openPool(PROBE_OPTIONS)
  let probeClient: pg.Client | undefined
  probes.on('acquire', (client) => {
    probeClient = client as pg.Client
  })
  const queue = new Set<PromiseWithResolvers<void>>()
  let running = 0
  /** Connections in a transaction whose commit has not been sent yet. */
  const uncommitted = new Set<pg.Client>()
  const aborted = new WeakSet<pg.ClientBase>()
  let isProbing = false
  let isBlocked = false
  let isClosed = false

  /** Transactions in progress fail as well: they may wait for locks of one that waits for its commit. */
  function block(): void {
    isBlocked = true
    onBlocked(true)
    for (const waiter of queue) waiter.reject(new CommitsBlocked())
    queue.clear()
    for (const client of uncommitted) {
      aborted.add(client)
      void client.end().catch(() => {})
    }
  }

  function unblock(): void {
    isProbing = false
    if (isBlocked) onBlocked(false)
    isBlocked = false
  }

  function startProbe(): void {
    if (isProbing || isClosed) return
    isProbing = true
    const timer = setTimeout(block, PROBE_TIMEOUT_MS)
    void probe().finally(() => clearTimeout(timer))
  }

  async function commitOn(statement: string): Promise<void> {
    const client = await probes.connect()
    let failure: Error | undefined
    try {
      await rejectCanceledWait(client, client.query(statement))
    } catch (error) {
      failure = error as Error
      throw error
    } finally {
      client.release(failure)
    }
  }

  async function probe(): Promise<void> {
    for (;;)
      try {
        await commitOn(PROBE)
        return unblock()
      } catch (error) {
        if (isClosed) return
        // While commits are not known to hang, the server is just unreachable. Once they are, only an error
        // of another kind ends the block: the server responds, and does not support the probe.
        const hangs = isBlocked || error instanceof CommitUnconfirmed
        if (!hangs || !isUnavailable(error)) return unblock()
        await new Promise((resolve) => setTimeout(resolve, PROBE_RETRY_MS).unref())
      }
  }

  function requireUnblocked(): void {
    if (isBlocked) throw new CommitsBlocked()
  }

  async function enter(): Promise<void> {
    if (running < CONCURRENT_MAX) {
      running += 1
      return
    }
    const waiter = Promise.withResolvers<void>()
    queue.add(waiter)
    const timer = setTimeout(() => {
      queue.delete(waiter)
      waiter.reject(new Overloaded('Too many writes wait for the database.'))
    }, QUEUE_TIMEOUT_MS)
    await waiter.promise.finally(() => clearTimeout(timer))
  }

  /** The next one in the queue takes over the slot. */
  function leave(): void {
    const [next] = queue
    if (!next) running -= 1
    else {
      queue.delete(next)
      next.resolve()
    }
  }

  return {
    confirmCommit: () => commitOn(CONFIRMATION),
    isBlocked: () => isBlocked,
    waiting: () => queue.size,
    /** Runs a transaction on a connection of the pool. */
    async run<T>(work: () => Promise<T>): Promise<T> {
      requireUnblocked()
      await enter()
      return work().finally(leave)
    },
    /** Runs a transaction on the control connection, which is not part of the pool. */
    async runUnlimited<T>(work: () => Promise<T>): Promise<T> {
      requireUnblocked()
      return work()
    },
    /**
     * From now until its commit is sent, the transaction is aborted when commits are found to hang. Throws if
     * they were while it waited for its connection.
     */
    watchTransaction(client: pg.ClientBase): void {
      requireUnblocked()
      uncommitted.add(client as pg.Client)
    },
    unwatch: (client: pg.ClientBase) => void uncommitted.delete(client as pg.Client),
    isAborted: (client: pg.ClientBase) => aborted.has(client),
    /** Rejects if the outcome of the commit is unknown, or if an operator canceled its wait for a standby. */
    async awaitCommit<T>(client: pg.ClientBase, pending: Promise<T>): Promise<T> {
      uncommitted.delete(client as pg.Client)
      const timer = setTimeout(startProbe, SLOW_AFTER_MS)
      try {
        return await rejectCanceledWait(client, pending)
      } catch (error) {
        if (!isConnectionLost(error)) throw error
        startProbe()
        throw new CommitUnconfirmed((error as Error).message)
      } finally {
        clearTimeout(timer)
      }
    },
    /** Call it when connections may be dead: a probe on a dead connection would never return. */
    resetProbe: () => void probeClient?.end().catch(() => {}),
    close(): void {
      isClosed = true
      void probeClient?.end().catch(() => {})
      void probes.end().catch(() => {})
    },
  }
}

/** PostgreSQL completes a commit whose wait for a standby was canceled, and only warns. */
async function rejectCanceledWait<T>(client: pg.ClientBase, pending: Promise<T>): Promise<T> {
  let isCanceled = false
  const onNotice = ({ routine }: { routine?: string | undefined }) => {
    if (routine === CANCELED_WAIT_ROUTINE) isCanceled = true
  }
  client.on('notice', onNotice)
  try {
    const result = await pending
    if (isCanceled) throw new CommitUnconfirmed('the wait for a standby was canceled')
    return result
  } finally {
    client.off('notice', onNotice)
  }
}
