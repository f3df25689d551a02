// Requests of another edge for clients of other workers. Each session of an edge has sessions of its
// own with them, so their messages and streams are passed on unchanged: the other worker sees the entry edge,
// and waits until that one has applied changed access rules. Workers only know clients of their own, so
// nothing is passed on twice.
import type { Cluster } from '../../edge-sdk/index.ts'
import { connectStreams } from '../../tunnel-protocol/connect-streams.ts'
import { Session, type YamuxStream } from '../../yamux/index.ts'
import { sessionOptions, toConnection } from '../peers/connection.ts'
import { readLines } from '../peers/control-lines.ts'
import {
  type EntryMessage,
  formatHead,
  parseServingMessage,
  type ServingMessage,
  type StreamHead,
} from '../peers/messages.ts'
import type { PeerTransport } from '../peers/transport.ts'
import type { Traffic } from '../traffic.ts'
import { MOVED_MS } from '../tunnels/client.ts'

export interface PeerRelayOptions {
  readonly otherWorkers: Cluster
  readonly transport: Pick<PeerTransport, 'connect'>
  readonly pressure: { readonly isHigh: boolean }
  readonly traffic: Pick<Traffic, 'add' | 'delete'>
}

interface Receiver {
  /** A message for the entry edge. */
  send(message: ServingMessage): void
  /** Another worker has no client of the host any more, or is gone. */
  onGone(host: string): void
}

interface WorkerSession {
  readonly session: Session
  readonly control: YamuxStream
}

/** A host that another worker was asked for. */
interface AskedHost {
  readonly id: string
  /** The worker that was asked before, and has no client of the host any more. */
  readonly previous: string | undefined
  open: WorkerSession | undefined
  /** Ids of the clients that the other worker has described. */
  clients: readonly string[]
}

export class PeerRelay {
  readonly #options: PeerRelayOptions
  readonly #receiver: Receiver
  readonly #sessions = new Map<string, Promise<WorkerSession>>()
  readonly #hosts = new Map<string, AskedHost>()
  /** Where the clients are that other workers have described, and those that have moved a moment ago. */
  readonly #clients = new Map<string, WorkerSession>()
  #isClosed = false

  constructor(options: PeerRelayOptions, receiver: Receiver) {
    this.#options = options
    this.#receiver = receiver
  }

  /**
   * Whether another worker has the host. Then it describes the tunnel, or `onGone` is called. The worker that
   * has had it for the shortest time is asked: clients that have moved to it may still be known at another
   * one.
   */
  describe(host: string, previous?: string): boolean {
    const workers = this.#options.otherWorkers.findEdges(host)
    const id = workers.findLast((worker) => worker !== previous)
    if (id === undefined) return false
    if (this.#hosts.get(host)?.id !== id) this.forget(host)
    const clients = this.#hosts.get(host)?.clients ?? []
    const asked: AskedHost = { id, previous, open: undefined, clients }
    this.#hosts.set(host, asked)
    void this.#connectOnce(id).then(
      (open) => {
        if (this.#hosts.get(host) !== asked) return
        asked.open = open
        send(open, { describe: host })
      },
      () => this.#onGone(host, id),
    )
    return true
  }

  has(host: string): boolean {
    return this.#hosts.has(host)
  }

  /** Streams for its clients that are on their way still reach them. */
  forget(host: string): void {
    const asked = this.#hosts.get(host)
    if (!asked) return
    this.#hosts.delete(host)
    this.#removeLater(host, asked)
    const { id, open } = asked
    const forgetNow = () => {
      if (open && this.#hosts.get(host)?.id !== id) send(open, { forget: host })
    }
    setTimeout(forgetNow, MOVED_MS).unref()
  }

  /** Passes on a message about a host, or does nothing. */
  pass(host: string, message: EntryMessage): void {
    const open = this.#hosts.get(host)?.open
    if (open) send(open, message)
  }

  /** Passes on a message about a client. Returns whether another worker has described it. */
  passToClient(client: string, message: EntryMessage): boolean {
    const open = this.#clients.get(client)
    if (open) send(open, message)
    return open !== undefined
  }

  /** Connects a stream to the other worker. Returns false if there is no session with it. */
  connect(stream: YamuxStream, head: StreamHead, rest: Buffer): boolean {
    const session = this.#clients.get(head.client)?.session
    if (!session) return false
    let upstream: YamuxStream
    try {
      upstream = session.open()
    } catch {
      return false
    }
    upstream.write(Buffer.concat([formatHead(head), rest]))
    connectStreams(stream, upstream)
    this.#addToTraffic(stream)
    return true
  }

  close(): void {
    this.#isClosed = true
    for (const opening of this.#sessions.values())
      opening.then(
        ({ session }) => session.close(),
        () => {},
      )
  }

  /** It ends when this worker may not carry traffic any more. */
  #addToTraffic(stream: YamuxStream): void {
    const { traffic } = this.#options
    const abort = () => void stream.destroy()
    const carried = { edgePosition: -1, client: undefined, abort, abortResponse: abort }
    traffic.add(carried)
    stream.once('close', () => traffic.delete(carried))
  }

  #connectOnce(id: string): Promise<WorkerSession> {
    const existing = this.#sessions.get(id)
    if (existing) return existing
    const opening = this.#connect(id)
    this.#sessions.set(id, opening)
    opening.catch(() => this.#sessions.delete(id))
    return opening
  }

  async #connect(id: string): Promise<WorkerSession> {
    const { otherWorkers, transport, pressure } = this.#options
    const worker = otherWorkers.peer(id)
    if (!worker) throw new Error('The worker has exited.')
    const socket = await transport.connect(worker)
    const session = new Session(toConnection(socket), {
      ...sessionOptions(pressure),
      role: 'client',
      // Only the entry side opens streams.
      maxStreams: 0,
      onStream: (stream) => stream.destroy(),
      onGoAway: () => session.close(),
      onClose: () => this.#onClosed(id),
    })
    if (this.#isClosed) session.close()
    const control = session.open()
    control.on('error', () => {})
    control.on('close', () => session.close())
    readLines(
      control,
      (fields) => this.#onMessage(id, parseServingMessage(fields)),
      (error) => session.close(error),
    )
    return { session, control }
  }

  #onMessage(id: string, message: ServingMessage): void {
    // The primary tells all workers what ends, and each tells the edges that are connected to it.
    if ('end' in message || 'replaced' in message) return
    if ('gone' in message) {
      this.#onGone(message.gone, id)
      return
    }
    if ('tunnel' in message) {
      const { host } = message.tunnel
      const asked = this.#hosts.get(host)
      // It was forgotten, or another worker has it by now.
      if (asked?.id !== id || !asked.open) return
      const { open } = asked
      this.#removeLater(host, { ...asked })
      asked.clients = message.tunnel.clients.map((client) => client.id)
      for (const client of asked.clients) this.#clients.set(client, open)
    }
    this.#receiver.send(message)
  }

  /** Another worker is asked, but not a third one: notices of where the clients are may be out of date. */
  #onGone(host: string, id: string): void {
    const asked = this.#hosts.get(host)
    if (asked?.id !== id) return
    if (asked.previous === undefined && !this.#isClosed && this.describe(host, id)) return
    this.forget(host)
    this.#receiver.onGone(host)
  }

  /** Removes the clients that are not described again soon. */
  #removeLater(host: string, { id, open, clients }: AskedHost): void {
    if (clients.length === 0) return
    const remove = () => {
      const current = this.#hosts.get(host)
      const kept = new Set(current?.id === id ? current.clients : [])
      for (const client of clients)
        if (!kept.has(client) && this.#clients.get(client) === open) this.#clients.delete(client)
    }
    setTimeout(remove, MOVED_MS).unref()
  }

  #onClosed(id: string): void {
    this.#sessions.delete(id)
    for (const [host, asked] of [...this.#hosts]) if (asked.id === id) this.#onGone(host, id)
  }
}

const send = ({ control }: WorkerSession, message: EntryMessage) =>
  void control.write(`${JSON.stringify(message)}\n`)
