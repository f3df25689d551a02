// The registry of open tunnels, by host name and by the secret with which their clients connect. pipenet
// holds the connections.
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import type { TunnelServer } from 'pipenet/server'
import type { Meter, Transfer } from '../../edge-sdk/index.ts'
import { CONNECTIONS_MAX, TunnelSocketAgent } from './agent.ts'
import { ClientLimit } from './client-address.ts'
import { ConnectionQuota } from './connection-quota.ts'
import { TunnelListener } from './tunnel-listener.ts'

const TUNNELS_MAX = 10_000
const TUNNELS_PER_WORKSPACE_MAX = 500
/** Below the capacity of the tunnel, so that one client cannot use all of it. */
const REQUESTS_PER_CLIENT = { max: CONNECTIONS_MAX / 2, maxPer48: (CONNECTIONS_MAX * 3) / 4 }
/**
 * How long a tunnel stays open without a connection: after opening, and after its last connection was lost.
 */
const FIRST_CONNECTION_TIMEOUT_MS = 10_000
const RECONNECT_TIMEOUT_MS = 3_000

/** Why a tunnel was closed; `disconnected` means that its client is gone. */
export type CloseReason = 'closed' | 'disconnected' | 'replaced' | 'revoked' | 'stopped'

export interface KeyHolder {
  readonly key: string
  readonly keyId: string
  readonly workspace: string
}

export interface Tunnel {
  /** Authenticates the tunnel client. */
  readonly secret: string
  readonly host: string
  readonly holder: KeyHolder
  readonly agent: TunnelSocketAgent
  readonly totals: Required<Transfer>
  /** Counts usage of the tunnel and of its workspace. */
  count(transfer: Transfer): void
  /** Adds a request, which `abort` ends when the tunnel is closed. Returns a function that removes it. */
  track(abort: () => void): () => void
  /** Number of requests in progress. */
  readonly requests: number
  readonly perClient: ClientLimit
}

export interface Registry {
  /** Undefined if another tunnel has the host, unless `reopenSecret` proves that it is the same one. */
  open(host: string, holder: KeyHolder, reopenSecret?: string): Tunnel | undefined
  /** The limit that prevents another tunnel of a workspace, as a message. */
  limitReached(workspace: string): string | undefined
  atHost(host: string): Tunnel | undefined
  withSecret(secret: string): Tunnel | undefined
  /** Whether the quota of the workspace admits another connection. */
  mayConnect(tunnel: Tunnel): boolean
  /** Adds a connection of the tunnel client. */
  connect(tunnel: Tunnel, socket: Socket): void
  close(tunnel: Tunnel, reason: CloseReason): void
  closeOfKey(keyId: string, reason: CloseReason): void
  closeAll(): void
  /** The distinct keys of all open tunnels. */
  holders(): KeyHolder[]
  /** Listens for stock pipenet clients. */
  readonly listener: TunnelServer
}

export interface RegistryOptions {
  readonly meter: Pick<Meter, 'opened' | 'closed' | 'transferred'> | undefined
  onOpened(tunnel: Tunnel): void
  onClosed(tunnel: Tunnel, reason: CloseReason): void
}

export function createRegistry({ meter, onOpened, onClosed }: RegistryOptions): Registry {
  const byHost = new Map<string, Tunnel>()
  const bySecret = new Map<string, Tunnel>()
  const countByWorkspace = new Map<string, number>()
  /** Functions that end the connections and requests of a tunnel when it is closed. */
  const cleanups = new Map<Tunnel, Set<() => void>>()
  const quota = new ConnectionQuota()
  const mayConnect = ({ holder, agent }: Tunnel) =>
    quota.admits(holder.workspace, agent.stats().connectedSockets)
  const listener = new TunnelListener((secret, socket) => {
    const tunnel = bySecret.get(secret)
    if (!tunnel) return
    // Connections of stock pipenet clients have not been checked before.
    if (!mayConnect(tunnel)) socket.destroy()
    const { workspace } = tunnel.holder
    quota.add(workspace)
    socket.once('close', () => quota.remove(workspace))
    socket.once(
      'close',
      onClose(tunnel, () => socket.destroy()),
    )
  })

  /** Registers a cleanup. Returns a function that removes it. */
  function onClose(tunnel: Tunnel, cleanup: () => void): () => void {
    const registered = cleanups.get(tunnel)
    registered?.add(cleanup)
    return () => void registered?.delete(cleanup)
  }

  function createTunnel(host: string, holder: KeyHolder): Tunnel {
    const secret = randomBytes(24).toString('base64url')
    const totals = { requests: 0, bytesIn: 0, bytesOut: 0 }
    const requests = new Set<() => void>()
    const tunnel: Tunnel = {
      secret,
      host,
      holder,
      agent: new TunnelSocketAgent(secret, listener),
      totals,
      count(transfer) {
        for (const [name, more] of Object.entries(transfer) as [keyof Transfer, number][])
          totals[name] += more
        meter?.transferred(holder.workspace, transfer)
      },
      track(abort) {
        requests.add(abort)
        const removeCleanup = onClose(tunnel, abort)
        return () => {
          requests.delete(abort)
          removeCleanup()
        }
      },
      perClient: new ClientLimit(REQUESTS_PER_CLIENT),
      get requests() {
        return requests.size
      },
    }
    return tunnel
  }

  function open(host: string, holder: KeyHolder, reopenSecret?: string): Tunnel | undefined {
    const existing = byHost.get(host)
    if (existing && existing.secret !== reopenSecret) return undefined
    if (existing) close(existing, 'replaced')
    const tunnel = createTunnel(host, holder)
    byHost.set(host, tunnel)
    bySecret.set(tunnel.secret, tunnel)
    cleanups.set(tunnel, new Set())
    countByWorkspace.set(holder.workspace, (countByWorkspace.get(holder.workspace) ?? 0) + 1)
    closeWhenDisconnected(tunnel)
    // Registers the agent at the listener; with a shared listener this is synchronous.
    void tunnel.agent.listen()
    meter?.opened(holder.workspace)
    onOpened(tunnel)
    return tunnel
  }

  function closeWhenDisconnected(tunnel: Tunnel): void {
    const disconnect = () => close(tunnel, 'disconnected')
    let timeout = setTimeout(disconnect, FIRST_CONNECTION_TIMEOUT_MS)
    onClose(tunnel, () => clearTimeout(timeout))
    tunnel.agent.on('online', () => clearTimeout(timeout))
    tunnel.agent.on('offline', () => {
      clearTimeout(timeout)
      if (bySecret.has(tunnel.secret)) timeout = setTimeout(disconnect, RECONNECT_TIMEOUT_MS)
    })
  }

  function close(tunnel: Tunnel, reason: CloseReason): void {
    const { host, secret, agent, holder } = tunnel
    if (!bySecret.delete(secret)) return
    byHost.delete(host)
    const others = (countByWorkspace.get(holder.workspace) ?? 0) - 1
    if (others > 0) countByWorkspace.set(holder.workspace, others)
    else countByWorkspace.delete(holder.workspace)
    agent.destroy()
    for (const cleanup of cleanups.get(tunnel) ?? []) cleanup()
    cleanups.delete(tunnel)
    meter?.closed(holder.workspace)
    onClosed(tunnel, reason)
  }

  return {
    listener,
    open,
    close,
    limitReached(workspace) {
      if (bySecret.size >= TUNNELS_MAX) return `This edge is at its limit of ${TUNNELS_MAX} tunnels.`
      if ((countByWorkspace.get(workspace) ?? 0) >= TUNNELS_PER_WORKSPACE_MAX)
        return `The workspace is at its limit of ${TUNNELS_PER_WORKSPACE_MAX} tunnels at this edge.`
      return undefined
    },
    atHost: (host) => byHost.get(host),
    withSecret: (secret) => bySecret.get(secret),
    mayConnect,
    connect: (tunnel, socket) => listener.accept(tunnel.secret, socket),
    closeOfKey(keyId, reason) {
      for (const tunnel of [...bySecret.values()]) if (tunnel.holder.keyId === keyId) close(tunnel, reason)
    },
    closeAll() {
      for (const tunnel of [...bySecret.values()]) close(tunnel, 'stopped')
    },
    holders: () => [...new Map([...bySecret.values()].map(({ holder }) => [holder.keyId, holder])).values()],
  }
}
