// A worker's connection to its primary.
import cluster from 'node:cluster'
import { Socket } from 'node:net'
import { isMessage, type Message } from './messages.ts'

export interface Primary {
  /** The number of this worker. A worker that replaces it has another one. */
  readonly id: string
  /** The sockets to listen on; empty if the cluster module passes connections to the workers. */
  readonly sockets: readonly Socket[]
  announceListening(port: number): void
  /** Sends a payload to the other workers. */
  broadcast(payload: string): void
  onBroadcast(listener: (payload: string) => void): void
  /** Calls a function of the primary. Arguments and results are JSON. */
  call(name: string, args: unknown[]): Promise<unknown>
  /** Sends a notice. Resolves when it has left this process. */
  notify(name: string, args: unknown[]): Promise<void>
  /** Notices of the primary, in their order. */
  onNotice(listener: (name: string, args: unknown[]) => void): void
  /** `read` returns the metrics that the primary combines with those of the other workers. */
  offerMetrics(read: () => Promise<unknown[]>): void
  /** Sends the metrics once more, before this process exits: what was counted since the last scrape stays. */
  sendLastMetrics(): Promise<void>
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
  let onNotice: (name: string, args: unknown[]) => void = () => {}
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
      case 'adit:notice':
        return onNotice(message.name, message.args)
      case 'adit:replaced':
        return replaced.resolve('replaced')
      case 'adit:ping':
        return void send({ kind: 'adit:pong' })
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
    id: String(cluster.worker?.id),
    // A read would fail, because the sockets are not connections.
    sockets: descriptors.map((fd) => new Socket({ fd, readable: false })),
    announceListening: (port) => send({ kind: 'adit:listening', port }),
    broadcast: (payload) => send({ kind: 'adit:broadcast', payload }),
    onBroadcast(listener) {
      onBroadcast = listener
    },
    call,
    notify: (name, args) =>
      new Promise((resolve) =>
        process.send?.({ kind: 'adit:notice', name, args } satisfies Message, undefined, {}, () => resolve()),
      ),
    onNotice(listener) {
      onNotice = listener
    },
    offerMetrics(read) {
      readMetrics = read
    },
    async sendLastMetrics() {
      send({ kind: 'adit:metrics', metrics: await readMetrics() })
    },
    replaced: replaced.promise,
    release: () => process.channel?.unref(),
  }
}
