// An edge that claims and reports tunnels for tests of the control plane: it sends only what the test says.
import { randomBytes } from 'node:crypto'
import type { ClaimedTunnel, ReportedTunnel } from '../../../src/contract/edge/tunnel-fields.ts'
import type { ClaimResult, SyncRequest, SyncResult, TunnelClaim } from '../../../src/contract/edge/tunnels.ts'
import { publicId } from '../../../src/server/domain/tunnels/reported.ts'
import { createGrants } from '../../../src/server/verification/grants.ts'
import { addEdge, type TestResponse, type TestServer } from '../api/server.ts'
import { SECRET } from '../databases/migrated-databases.ts'
import { readRows, setRows } from '../databases/rows.ts'
import { pluck } from '../pluck.ts'

export const tunnelId = () => `tun_${randomBytes(10).toString('hex')}`

let started = Date.now()

/** Each is later than those before. */
export function newSession(): string {
  started += 1
  return `${started.toString(36).padStart(9, '0')}-${randomBytes(6).toString('hex')}`
}

/** A tunnel of the server's workspace and key. */
export const tunnelOf = (server: TestServer, given: Partial<ReportedTunnel> = {}): ReportedTunnel => ({
  id: tunnelId(),
  workspace: server.workspace.slug,
  name: 'my-app',
  type: 'http',
  pool: false,
  url: `https://${given.name ?? 'my-app'}.acme.localhost`,
  keyId: server.key.id,
  clientAddress: '192.0.2.7',
  clientVersion: 'adit/0.1.0',
  openedAt: '2026-11-15T10:02:11.000Z',
  requests: 0,
  bytesIn: 0,
  bytesOut: 0,
  streams: 0,
  ...given,
})

/** The id of the tunnel in lists and events. */
export const publicIdOf = (server: TestServer, tunnel: ClaimedTunnel) => publicId(server.workspace.id, tunnel)

const grants = createGrants(SECRET)

/** As if the edge had just verified the key. */
export const grantOf = (edge: { id: string }, keyId: string) => grants.issue(edge.id, keyId, Date.now())

export type TunnelEdge = Awaited<ReturnType<typeof addTunnelEdge>>

/** `url` is that of another node. */
export async function addTunnelEdge(server: TestServer, name: string, url = server.url, group?: string) {
  const edge = await addEdge(server, name, url, group)
  const state = { session: newSession(), sequence: 0, previous: 0 }

  const claimBody = (...tunnels: ClaimedTunnel[]) => ({
    session: state.session,
    sequence: state.sequence + 1,
    grants: grantsOf(tunnels),
    tunnels,
  })
  const syncBody = (given: Partial<SyncRequest> = {}): SyncRequest => ({
    session: state.session,
    sequence: state.sequence + 1,
    previous: state.previous,
    version: 'adit/0.1.0',
    startedAt: '2026-11-15T08:00:00.000Z',
    load: { tunnels: 0, streams: 0 },
    changed: [],
    closed: [],
    grants: grantsOf(given.changed ?? []),
    ...given,
  })
  const grantsOf = (tunnels: readonly ClaimedTunnel[]) =>
    [...new Set(tunnels.map(({ keyId }) => keyId))].map((keyId) => grantOf(edge, keyId))
  const expectOk = <T>({ status, text, json }: TestResponse): T => {
    if (status !== 200) throw new Error(`${status} ${text}`)
    return json
  }
  return {
    ...edge,
    state,
    claimBody,
    syncBody,
    claim: async (tunnel: ClaimedTunnel, given: Partial<TunnelClaim> = {}) => {
      const response = await edge.post('/tunnels/claim', { ...claimBody(tunnel), ...given })
      return expectOk<{ results: [ClaimResult] }>(response).results[0]
    },
    /** One claim of several tunnels. */
    claimAll: async (tunnels: readonly ReportedTunnel[]) => {
      const response = await edge.post('/tunnels/claim', claimBody(...tunnels))
      return expectOk<{ results: ClaimResult[] }>(response).results
    },
    /** The next sync; its response arrives. */
    sync: async (given: Partial<SyncRequest> = {}) => {
      const body = syncBody(given)
      const result = expectOk<SyncResult>(await edge.post('/tunnels/sync', body))
      state.sequence = body.sequence
      state.previous = result.resync ? 0 : body.sequence
      return result
    },
    restart: () => Object.assign(state, { session: newSession(), sequence: 0, previous: 0 }),
  }
}

/** Ends the lease of an edge, as if it had been away for longer. */
export const expireLease = ({ services }: TestServer, edgeId: string) =>
  setRows(services, 'edge_sessions', { lease_until: 0 }, { edge_id: edgeId })

/** The ids of the tunnels that the control plane has of an edge. */
export async function storedTunnels({ services }: TestServer, edgeId: string): Promise<string[]> {
  return pluck(await readRows(services, 'open_tunnels', { edge_id: edgeId }, 'id'), 'id')
}
