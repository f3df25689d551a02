// The other workers of this edge: where their clients are, and connections to them over Unix sockets. A
// worker serves them only clients of its own.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Cluster, Peer } from '../../edge-sdk/index.ts'
import type { PeerTransport } from '../peers/transport.ts'

const CONNECT_TIMEOUT_MS = 1_000
/** A connection begins with the number of the worker that opens it. */
const ID_BYTES = 4

export class WorkerCluster implements Cluster {
  /** The id of this worker. */
  readonly edgeId: string
  readonly isComplete = true
  readonly #peers = new Map<string, Peer>()
  readonly #hosts = new Map<string, Set<string>>()
  #onPeers: () => void = () => {}
  readonly #locationsListeners: ((hosts: readonly string[]) => void)[] = []

  constructor(id: string) {
    this.edgeId = id
  }

  /** The hosts of all clients of other workers. */
  hosts(): Iterable<string> {
    return this.#hosts.keys()
  }

  findEdges(host: string): readonly string[] {
    const workers = this.#hosts.get(host)
    return workers ? [...workers].filter((id) => this.#peers.has(id)) : []
  }

  /** The ports of other workers are those of the edge, which it has already. */
  tcpPort(): undefined {
    return undefined
  }

  tcpHosts(): Iterable<string> {
    return []
  }

  peer(id: string): Peer | undefined {
    return this.#peers.get(id)
  }

  onPeers(listener: () => void): void {
    this.#onPeers = listener
  }

  onLocations(listener: (hosts: readonly string[]) => void): void {
    this.#locationsListeners.push(listener)
  }

  /** The primary passes on revocations. */
  onRevoked(): void {}

  setWorker(id: string, socketPath: string | null): void {
    if (id === this.edgeId) return
    if (socketPath === null) this.#peers.delete(id)
    else this.#peers.set(id, { id, address: socketPath, secrets: [] })
    this.#onPeers()
  }

  setLocation(host: string, id: string, isOpen: boolean): void {
    if (id === this.edgeId) return
    const workers = this.#hosts.get(host) ?? new Set()
    if (isOpen) this.#hosts.set(host, workers.add(id))
    else if (workers.delete(id) && workers.size === 0) this.#hosts.delete(host)
    for (const listener of this.#locationsListeners) listener([host])
  }
}

/** The folder of the sockets is private, so a connection is one of another worker. */
export const workerTransport = (id: string, socketPath: string): PeerTransport => ({
  async listen(onPeer) {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      void readId(socket).then(
        (peer) => onPeer(peer, socket),
        () => socket.destroy(),
      )
    })
    // Exclusive: the cluster module would let all workers share the socket.
    server.listen({ path: socketPath, exclusive: true })
    await once(server, 'listening')
    return { close: () => void server.close() }
  },
  async connect({ address }) {
    const socket = connect(address)
    try {
      await once(socket, 'connect', { signal: AbortSignal.timeout(CONNECT_TIMEOUT_MS) })
    } catch (error) {
      socket.on('error', () => {})
      socket.destroy()
      throw error
    }
    const bytes = Buffer.alloc(ID_BYTES)
    bytes.writeUInt32BE(Number(id))
    socket.write(bytes)
    return socket
  },
})

async function readId(socket: Socket): Promise<string> {
  const signal = AbortSignal.timeout(CONNECT_TIMEOUT_MS)
  for (;;) {
    const bytes = socket.read(ID_BYTES) as Buffer | null
    if (bytes) return String(bytes.readUInt32BE())
    await once(socket, 'readable', { signal })
  }
}
