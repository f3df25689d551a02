// The open tunnels, by host name and by the secret that their other ends connect with. pipenet holds the connections.
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import type { TunnelServer } from 'pipenet/server'
import type { Meter, Transfer } from '../../edge-sdk/index.ts'
import { CONNECTIONS_MAX, TunnelSocketAgent } from './agent.ts'
import { ClientLimit } from './client-address.ts'
import { ConnectionQuota } from './connection-quota.ts'
import { Door } from './tunnel-listener.ts'

const TUNNELS_MAX = 10_000
const TUNNELS_OF_WORKSPACE_MAX = 500
/** Requests of one client at once: less than what the tunnel carries, so that nobody can fill it alone. */
const REQUESTS_OF_CLIENT = { max: CONNECTIONS_MAX / 2, maxOf48: (CONNECTIONS_MAX * 3) / 4 }
/** So long may a tunnel be without any connection: at first, and when its network was away. */
const FIRST_CONNECTION_MS = 10_000
const RECONNECTION_MS = 3_000

/** Why a tunnel ended: `left` says that its other end is gone. */
export type CloseReason = 'closed' | 'left' | 'replaced' | 'revoked' | 'stopped'

export interface Holder {
  readonly key: string
  readonly keyId: string
  readonly workspace: string
}

export interface Tunnel {
  /** Whoever has it speaks for the tunnel's other end. */
  readonly secret: string
  readonly host: string
  readonly holder: Holder
  readonly agent: TunnelSocketAgent
  readonly totals: Required<Transfer>
  /** Counts for the tunnel and for its workspace. */
  count(transfer: Transfer): void
  /** A visitor who is being served, or waits for it; ended with the tunnel. */
  serve(end: () => void): () => void
  readonly visitors: number
  readonly perClient: ClientLimit
}

export interface Registry {
  /** Undefined where another has the host, unless the secret shows that it is the same that comes back. */
  open(host: string, holder: Holder, comesBackWith?: string): Tunnel | undefined
  /** Why no more can be opened for a workspace. */
  fullness(workspace: string): string | undefined
  atHost(host: string): Tunnel | undefined
  withSecret(secret: string): Tunnel | undefined
  /** Whether the workspace of a tunnel may have another connection. */
  mayConnect(tunnel: Tunnel): boolean
  /** Takes a connection from the other end of a tunnel. */
  connect(tunnel: Tunnel, socket: Socket): void
  close(tunnel: Tunnel, ending: CloseReason): void
  closeOfKey(keyId: string, ending: CloseReason): void
  closeAll(): void
  /** The keys that hold tunnels. */
  holders(): Holder[]
  /** Where stock pipenet clients connect. */
  readonly door: TunnelServer
}

export interface RegistryOptions {
  readonly meter: Pick<Meter, 'opened' | 'closed' | 'transferred'> | undefined
  onOpened(tunnel: Tunnel): void
  onClosed(tunnel: Tunnel, ending: CloseReason): void
}

export function createRegistry({ meter, onOpened, onClosed }: RegistryOptions): Registry {
  const byHost = new Map<string, Tunnel>()
  const bySecret = new Map<string, Tunnel>()
  const ofWorkspace = new Map<string, number>()
  /** What ends a tunnel's connections and visitors. */
  const ends = new Map<Tunnel, Set<() => void>>()
  const quota = new ConnectionQuota()
  const mayConnect = ({ holder, agent }: Tunnel) =>
    quota.admits(holder.workspace, agent.stats().connectedSockets)
  const door = new Door((secret, socket) => {
    const tunnel = bySecret.get(secret)
    if (!tunnel) return
    // Stock pipenet clients get here without having been asked.
    if (!mayConnect(tunnel)) socket.destroy()
    const { workspace } = tunnel.holder
    quota.add(workspace)
    socket.once('close', () => quota.remove(workspace))
    endWith(tunnel, () => socket.destroy(), socket)
  })

  /** Keeps what ends something until it has ended by itself. */
  function endWith(tunnel: Tunnel, end: () => void, socket?: Socket): () => void {
    const endings = ends.get(tunnel)
    endings?.add(end)
    const forget = () => void endings?.delete(end)
    socket?.once('close', forget)
    return forget
  }

  function open(host: string, holder: Holder, comesBackWith?: string): Tunnel | undefined {
    const present = byHost.get(host)
    if (present && present.secret !== comesBackWith) return undefined
    if (present) close(present, 'replaced')
    const secret = randomBytes(24).toString('base64url')
    const agent = new TunnelSocketAgent(secret, door)
    const totals = { requests: 0, bytesIn: 0, bytesOut: 0 }
    const served = new Set<() => void>()
    const tunnel: Tunnel = {
      secret,
      host,
      holder,
      agent,
      totals,
      count(transfer) {
        for (const [name, more] of Object.entries(transfer) as [keyof Transfer, number][])
          totals[name] += more
        meter?.transferred(holder.workspace, transfer)
      },
      serve(end) {
        served.add(end)
        const forget = endWith(tunnel, end)
        return () => {
          served.delete(end)
          forget()
        }
      },
      perClient: new ClientLimit(REQUESTS_OF_CLIENT),
      get visitors() {
        return served.size
      },
    }
    byHost.set(host, tunnel)
    bySecret.set(secret, tunnel)
    ends.set(tunnel, new Set())
    ofWorkspace.set(holder.workspace, (ofWorkspace.get(holder.workspace) ?? 0) + 1)
    closeWhenLeft(tunnel)
    // Announces it at the door; with one door for all it is done at once.
    void agent.listen()
    meter?.opened(holder.workspace)
    onOpened(tunnel)
    return tunnel
  }

  function closeWhenLeft(tunnel: Tunnel): void {
    const leave = () => close(tunnel, 'left')
    let leaving = setTimeout(leave, FIRST_CONNECTION_MS)
    endWith(tunnel, () => clearTimeout(leaving))
    tunnel.agent.on('online', () => clearTimeout(leaving))
    tunnel.agent.on('offline', () => {
      clearTimeout(leaving)
      if (bySecret.has(tunnel.secret)) leaving = setTimeout(leave, RECONNECTION_MS)
    })
  }

  function close(tunnel: Tunnel, ending: CloseReason): void {
    const { host, secret, agent, holder } = tunnel
    if (!bySecret.delete(secret)) return
    byHost.delete(host)
    const others = (ofWorkspace.get(holder.workspace) ?? 0) - 1
    if (others > 0) ofWorkspace.set(holder.workspace, others)
    else ofWorkspace.delete(holder.workspace)
    agent.destroy()
    for (const end of ends.get(tunnel) ?? []) end()
    ends.delete(tunnel)
    meter?.closed(holder.workspace)
    onClosed(tunnel, ending)
  }

  return {
    door,
    open,
    close,
    fullness(workspace) {
      if (bySecret.size >= TUNNELS_MAX) return 'This edge has as many tunnels as it can hold.'
      if ((ofWorkspace.get(workspace) ?? 0) >= TUNNELS_OF_WORKSPACE_MAX)
        return `The workspace has ${TUNNELS_OF_WORKSPACE_MAX} tunnels open at this edge, and may have no more.`
      return undefined
    },
    atHost: (host) => byHost.get(host),
    withSecret: (secret) => bySecret.get(secret),
    mayConnect,
    connect: (tunnel, socket) => door.take(tunnel.secret, socket),
    closeOfKey(keyId, ending) {
      for (const tunnel of [...bySecret.values()]) if (tunnel.holder.keyId === keyId) close(tunnel, ending)
    },
    closeAll() {
      for (const tunnel of [...bySecret.values()]) close(tunnel, 'stopped')
    },
    holders: () => [...new Map([...bySecret.values()].map(({ holder }) => [holder.keyId, holder])).values()],
  }
}
