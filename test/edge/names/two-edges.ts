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
export async function startEdge(t: Test, server: TestServer, name: string) {
  const { id, token } = await addEdge(server, name)
  const relay = await startRelay(t, server.url)
  const env = {
    ADIT_URL: relay.url,
    ADIT_EDGE_KEY: token,
    ADIT_EDGE_FOLDER: join(createFolder(t), 'edge'),
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

export async function startTwoEdges(t: Test, engine: Engine = 'sqlite') {
  const server = await serve(t, { engine })
  const admin = await addMember(server, 'Ann', 'admin')
  const edges = [await startEdge(t, server, 'one'), await startEdge(t, server, 'two')] as const
  const list = async () => (await admin.get('/workspaces/acme/tunnels')).json.tunnels as Listed[]
  const listed = async () =>
    (await list()).map(({ name, edges }) => `${name} at ${edges.map((edge) => edge.name)}`)
  return { server, admin, edges, key: server.key.token, list, listed }
}

/** The reason of the rejection; undefined if the tunnel was opened. */
export const attempt = (...args: Parameters<typeof openRawTunnel>) =>
  openRawTunnel(...args).then(
    () => undefined,
    (error: Error) => error.message,
  )
