// Edges of one process that forward to each other. The test says which edges are peers, and where clients
// are; otherwise each edge is a peer of the others, and locations follow the tunnels.
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { EdgeOptions } from '../../../src/edge/options.ts'
import { startEdge } from '../../../src/edge/start.ts'
import type { Tunnel } from '../../../src/edge/tunnels/tunnel.ts'
import {
  type Cluster,
  openTokensFile,
  type Transfer,
  type UsageQuota,
  type Verifier,
} from '../../../src/edge-sdk/index.ts'
import { atEnd, type Test } from '../cleanup.ts'
import { createFolder } from '../databases/create.ts'
import { freePort } from '../processes/ports.ts'
import { run } from '../processes/process.ts'

export const pairSecret = (a: string, b: string, hour = 0) =>
  createHash('sha256').update([a, b].sort().join()).update(String(hour)).digest()

/** The cluster that all edges of a test share. */
export class PeerEdges {
  readonly #t: Test
  /** The keys of all edges. */
  readonly file: string
  readonly key: string
  /** Edges with a client, by host. */
  readonly locations = new Map<string, Set<string>>()
  /** Ports of TCP tunnels, by host. */
  readonly ports = new Map<string, number>()
  /** Addresses of the peers. A test may put a relay in between, and remove a peer. */
  readonly addresses = new Map<string, string>()
  /** Keys of pairs, the current one first. */
  secrets = (a: string, b: string): readonly Buffer[] => [pairSecret(a, b)]
  readonly #onPeers: (() => void)[] = []
  readonly #onLocations: ((hosts: readonly string[]) => void)[] = []
  readonly #onRevoked = new Map<string, (hash: string) => void>()

  static async create(t: Test): Promise<PeerEdges> {
    const file = join(createFolder(t), 'tokens.json')
    const { stdout } = await run(t, ['tokens-file', 'add', 'acme', '--file', file], {})
    return new PeerEdges(t, file, stdout.trim())
  }

  constructor(t: Test, file: string, key: string) {
    this.#t = t
    this.file = file
    this.key = key
  }

  locate(host: string, ...edges: string[]): void {
    this.locations.set(host, new Set(edges))
    for (const listener of this.#onLocations) listener([host])
  }

  /** The edge learns from the control plane that a key was revoked. */
  revoke(edgeId: string, hash: string): void {
    this.#onRevoked.get(edgeId)?.(hash)
  }

  removePeer(id: string): void {
    this.addresses.delete(id)
    for (const listener of this.#onPeers) listener()
  }

  view(edgeId: string): Cluster {
    return {
      edgeId,
      findEdges: (host) => [...(this.locations.get(host) ?? [])].filter((id) => id !== edgeId),
      peer: (id) => {
        const address = this.addresses.get(id)
        return address === undefined ? undefined : { id, address, secrets: this.secrets(edgeId, id) }
      },
      isComplete: true,
      tcpPort: (host) => this.ports.get(host),
      tcpHosts: () => this.ports.keys(),
      onPeers: (listener) => this.#onPeers.push(listener),
      onLocations: (listener) => this.#onLocations.push(listener),
      onRevoked: (listener) => this.#onRevoked.set(edgeId, listener),
    }
  }

  async start(id: string, settings: Partial<EdgeOptions> = {}) {
    const peerPort = await freePort()
    /** What the meter of the edge was told. */
    const usage = { requests: 0, bytesIn: 0, bytesOut: 0 }
    const tunnels = new Map<string, Tunnel>()
    const quotas = new Map<string, number>()
    let onQuota: ((workspace: string, quota: UsageQuota) => void) | undefined
    const edge = await startEdge({
      ...OPTIONS,
      port: await freePort(),
      peerListener: { host: '127.0.0.1', port: peerPort },
      meter: {
        opened() {},
        closed() {},
        count() {},
        rejected() {},
        setQuota() {},
        spoolBytes: () => 0,
        async stop() {},
        transferred(_workspace: string, { requests = 0, bytesIn = 0, bytesOut = 0 }: Transfer) {
          usage.requests += requests
          usage.bytesIn += bytesIn
          usage.bytesOut += bytesOut
        },
      },
      startVerifier: (callbacks): Verifier => {
        onQuota = callbacks.onQuota
        const verifier = openTokensFile(this.file, { tunnelDomain: 'tunnels.test', ...callbacks })
        return {
          ...verifier,
          cluster: this.view(id),
          quotaReachedUntil: (workspace) => quotas.get(workspace),
        }
      },
      onOpened: (tunnel) => {
        tunnels.set(tunnel.address.name, tunnel)
        this.locate(tunnel.address.host, ...(this.locations.get(tunnel.address.host) ?? []), id)
      },
      onClosed: ({ address, clients }) => {
        if (clients.size > 0) return
        const edges = [...(this.locations.get(address.host) ?? [])]
        this.locate(address.host, ...edges.filter((edge) => edge !== id))
      },
      ...settings,
    })
    atEnd(this.#t, () => edge.stop())
    this.addresses.set(id, `127.0.0.1:${peerPort}`)
    for (const listener of this.#onPeers) listener()
    return {
      ...edge,
      id,
      port: Number(new URL(edge.url).port),
      peerPort,
      usage,
      tunnels,
      /** The quota of the workspace is reached until then; undefined: it is not. */
      setQuota(workspace: string, until: number | undefined) {
        if (until === undefined) quotas.delete(workspace)
        else quotas.set(workspace, until)
        onQuota?.(workspace, { level: until === undefined ? 'ok' : 'reached' } as unknown as UsageQuota)
      },
    }
  }
}

const OPTIONS = {
  host: '127.0.0.1',
  publicEndpoint: undefined,
  tcpHost: '127.0.0.1',
  certificatesPerDay: 1,
  certificatesTotalPerDay: 1,
  onCertificatesLimited: () => {},
  localPorts: undefined,
  trustedProxies: ['127.0.0.1/32'],
  startReporter: undefined,
  onWrongPassword: () => {},
  onPortUnavailable: () => {},
  onConnectionsLimited: () => {},
  onUnnamedClient: () => {},
  onIgnoredProxy: () => {},
} satisfies Partial<EdgeOptions>
