// A worker's connection to its primary.
import cluster from 'node:cluster'
import { Socket } from 'node:net'
import { isMessage, type Message } from './messages.ts'

export interface Primary {
  /** The sockets to listen on; empty if the cluster module passes connections to the workers. */
  readonly sockets: readonly Socket[]
  announceListening(port: number): void
  /** Sends a payload to the other workers. */
  broadcast(payload: string): void
  onBroadcast(listener: (payload: string) => void): void
  /** Calls a function of the primary. Arguments and results are JSON. */
  call(name: string, args: unknown[]): Promise<unknown>
  /** `read` returns the metrics that the primary combines with those of the other workers. */
  offerMetrics(read: () => Promise<unknown[]>): void
  /** Resolves when another worker listens in place of this one. */
  readonly replaced: Promise<'replaced'>
  /** Lets this process exit although it is still connected to the primary. */
  release(): void
}

/** Undefined if this process is not a worker. `descriptors` are those of the sockets that it inherits. */
export function connectToPrimary(descriptors: readonly number[]): Primary | undefined {
  if (!cluster.isWorker) return undefined
  // Errors are ignored: if the primary has exited, this process exits too.
  const send = (message: Message) => process.send?.(message, undefined, {}, () => {})
  let onBroadcast: (payload: string) => void = () => {}
  const replaced = Promise.withResolvers<'replaced'>()
  let readMetrics = async (): Promise<unknown[]> => []

  const calls = new Map<number, (result: unknown) => void>()
  let lastCall = 0

  function call(name: string, args: unknown[]): Promise<unknown> {
    const { promise, resolve } = Promise.withResolvers<unknown>()
    lastCall += 1
    calls.set(lastCall, resolve)
    send({ kind: 'adit:call', id: lastCall, name, args })
    return promise
  }

  async function receive(message: Message): Promise<void> {
    switch (message.kind) {
      case 'adit:broadcast':
        return onBroadcast(message.payload)
      case 'adit:result':
        calls.get(message.id)?.(message.result)
        calls.delete(message.id)
        return
      case 'adit:replaced':
        return replaced.resolve('replaced')
      case 'adit:metrics-request':
        send({ kind: 'adit:metrics', metrics: await readMetrics() })
    }
  }
  process.on('message', (message) => {
    // If the metrics cannot be read, they are missing in this scrape.
    if (isMessage(message)) receive(message).catch(() => {})
  })
  // A terminal sends these signals to every process. The primary decides, and sends SIGTERM.
  for (const name of ['SIGHUP', 'SIGINT'] as const) process.on(name, () => {})
  return {
    // A read would fail, because the sockets are not connections.
    sockets: descriptors.map((fd) => new Socket({ fd, readable: false })),
    announceListening: (port) => send({ kind: 'adit:listening', port }),
    broadcast: (payload) => send({ kind: 'adit:broadcast', payload }),
    onBroadcast(listener) {
      onBroadcast = listener
    },
    call,
    offerMetrics(read) {
      readMetrics = read
    },
    replaced: replaced.promise,
    release: () => process.channel?.unref(),
  }
}
