// A control plane with two edges, each behind a relay.
import { join } from 'node:path'
import { addMember } from '../../support/accounts/users.ts'
import { addEdge, serve, type TestServer } from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { createFolder, type Engine } from '../../support/databases/create.ts'
import { openRawTunnel } from '../../support/edges/standalone-edge.ts'
import { startTunnelEdge } from '../../support/edges/tunnels.ts'
import { startRelay } from '../../support/network/relay.ts'

/** An edge process, with a relay between it and the control plane. */
export async function startEdge(t: Test, server: TestServer, name: string, settings = {}) {
  const { id, token } = await addEdge(server, name)
  const relay = await startRelay(t, server.url)
  const env = {
    ADIT_URL: relay.url,
    ADIT_EDGE_KEY: token,
    ADIT_EDGE_FOLDER: join(createFolder(t), 'edge'),
    ...settings,
  }
  return { ...(await startTunnelEdge(t, { env })), id, relay }
}

interface Listed {
  access: { basicAuth: boolean; allowIp: string[] }
  id: string
  name: string
  url: string
  edges: { name: string }[]
  key: { id: string; label: string }
  client: { address: string; version: string | null }
  requests: number
  bytesOut: number
}

export async function startControlPlane(t: Test, engine: Engine = 'sqlite') {
  const server = await serve(t, { engine })
  const admin = await addMember(server, 'Ann', 'admin')
  const list = async () => (await admin.get('/workspaces/acme/tunnels')).json.tunnels as Listed[]
  return { server, admin, key: server.key.token, list }
}

export async function startTwoEdges(t: Test, engine: Engine = 'sqlite') {
  const plane = await startControlPlane(t, engine)
  const { server, list } = plane
  const edges = [await startEdge(t, server, 'one'), await startEdge(t, server, 'two')] as const
  const listed = async () =>
    (await list()).map(({ name, edges }) => `${name} at ${edges.map((edge) => edge.name)}`)
  return { ...plane, edges, listed }
}

/** The reason of the rejection; undefined if the tunnel was opened. */
export const attempt = (...args: Parameters<typeof openRawTunnel>) =>
  openRawTunnel(...args).then(
    () => undefined,
    (error: Error) => error.message,
  )
