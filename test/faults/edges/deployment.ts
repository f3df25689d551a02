// A cluster of edges as processes, with the control plane, tunnels of several workspaces and groups, and a
// relay on each connection that a fault can cut.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { TestContext } from 'node:test'
import { createGroup, setWorkspaceGroup } from '../../../src/server/domain/cluster/groups.ts'
import { createKey } from '../../../src/server/domain/keys/lifecycle.ts'
import { createEdge, setUrl } from '../../../src/server/domain/tunnels/edges.ts'
import { listAllOpen } from '../../../src/server/domain/tunnels/open.ts'
import { createWorkspace } from '../../../src/server/domain/workspaces/manage.ts'
import { openTunnel } from '../../../src/tunnel/index.ts'
import { operator } from '../../support/api/server.ts'
import { atEnd } from '../../support/cleanup.ts'
import { createFolder, createMigratedDatabase, type Engine } from '../../support/databases/create.ts'
import { listen } from '../../support/network/listen.ts'
import { type Relay, startRelay } from '../../support/network/relay.ts'
import { freePort } from '../../support/processes/ports.ts'
import { startProcess } from '../../support/processes/process.ts'
import { workersOf } from '../../support/processes/workers.ts'
import { until } from '../../support/until.ts'
import { openServicesOn } from '../deployments.ts'
import { type Node, startNode } from '../nodes.ts'

/** One edge of the group has several processes. */
const EDGE_WITH_WORKERS = 'two'
/** Workspaces with the group of their edges. */
const WORKSPACES = [
  ['acme', 'default'],
  ['beta', 'default'],
  ['gamma', 'eu'],
] as const
const EDGES = [
  ['one', 'default'],
  ['two', 'default'],
  ['three', 'default'],
  ['foreign', 'eu'],
] as const
const TUNNELS_PER_WORKSPACE = 4
export const PASSWORD = 'ann:a-password'
const TUNNEL_DOMAIN = 'tunnels.test'

export interface TestEdge {
  readonly name: string
  readonly group: string
  readonly port: number
  /** Between the edge and its node, its tunnel clients, and the edges that forward to it. */
  readonly links: { readonly node: Relay; readonly clients: Relay; readonly peers: Relay }
  /** A load balancer sends nothing there. Aborted when requests in progress are lost, too. */
  isOut: boolean
  outage: AbortController
  /** The process to which signals are sent, and its workers if it has some. */
  processes(): { readonly main: number; readonly workers: readonly number[] }
  start(): Promise<void>
  /** Sends a signal, and waits for the end of the process. */
  end(signal: NodeJS.Signals): Promise<void>
}

export interface TestTunnel {
  readonly host: string
  readonly workspace: string
  readonly group: string
  readonly hasPassword: boolean
  /** How often each request was received, by id. */
  readonly received: Map<string, number>
}

interface TestNode extends Node {
  readonly database: Relay | undefined
}

export interface EdgeCluster {
  readonly services: Awaited<ReturnType<typeof openServicesOn>>
  readonly nodes: readonly TestNode[]
  readonly edges: readonly TestEdge[]
  readonly tunnels: readonly TestTunnel[]
  readonly workspaceIds: ReadonlyMap<string, string>
  /** Requests of the health check of the load balancer, by workspace. */
  readonly checks: Map<string, number>
}

export async function deployEdges(t: TestContext, engine: Engine, nodeCount: number): Promise<EdgeCluster> {
  const database = await createMigratedDatabase(t, engine)
  const services = await openServicesOn(database)
  atEnd(t, () => services.store.close())
  await createGroup(services, operator, 'eu')
  const workspaceIds = new Map<string, string>()
  const keys = new Map<string, string>()
  for (const [slug, group] of WORKSPACES) {
    const { id } = await createWorkspace(services, operator, { slug, provisioned: true })
    workspaceIds.set(slug, id)
    if (group !== 'default') await setWorkspaceGroup(services, operator, slug, group)
    const { token } = await createKey({ ...services, actor: operator, workspaceId: id })
    keys.set(slug, token)
  }
  const nodes: TestNode[] = []
  for (let index = 1; index <= nodeCount; index++) nodes.push(await deployNode(t, `node-${index}`, database))
  const edges: TestEdge[] = []
  for (const [index, [name, group]] of EDGES.entries()) {
    const edge = await createEdge(services, operator, name, { group })
    const started = await deployEdge(t, { name, group }, edge.token, nodes[index % nodes.length] as TestNode)
    await setUrl(services, operator, edge.id, started.links.clients.url)
    edges.push(started)
  }
  const tunnels: TestTunnel[] = []
  for (const [workspace, group] of WORKSPACES)
    for (let index = 0; index < TUNNELS_PER_WORKSPACE; index++) {
      const options = { workspace, group, name: `app-${index}`, hasPassword: index === 0 }
      const near = edges.filter((edge) => edge.group === group)
      const edge = near[index % near.length] as TestEdge
      tunnels.push(await deployTunnel(t, options, keys.get(workspace) as string, edge))
    }
  return { services, nodes, edges, tunnels, workspaceIds, checks: new Map() }
}

/** With a fixed port, because it is started again. SQLite has no connection that a relay can cut. */
async function deployNode(t: TestContext, name: string, database: string): Promise<TestNode> {
  const url = new URL(database)
  const relay = url.protocol.startsWith('postgres') ? await startRelay(t, database) : undefined
  if (relay) url.port = relay.port
  const node = await startNode(t, name, {
    ADIT_DATABASE_URL: relay ? url.href : database,
    ADIT_PORT: String(await freePort()),
    ADIT_TUNNEL_DOMAIN: TUNNEL_DOMAIN,
  })
  return Object.defineProperty(node as TestNode, 'database', { value: relay })
}

async function deployEdge(
  t: TestContext,
  { name, group }: Pick<TestEdge, 'name' | 'group'>,
  credential: string,
  node: Node,
): Promise<TestEdge> {
  const [port, peerPort] = [await freePort(), await freePort()]
  const links = {
    node: await startRelay(t, node.url),
    clients: await startRelay(t, `http://127.0.0.1:${port}`),
    peers: await startRelay(t, `http://127.0.0.1:${peerPort}`),
  }
  const env = {
    ADIT_URL: links.node.url,
    ADIT_EDGE_KEY: credential,
    ADIT_EDGE_HOST: '127.0.0.1',
    ADIT_EDGE_PORT: String(port),
    ADIT_EDGE_PEER_PORT: String(peerPort),
    ADIT_EDGE_PEER_ADDRESS: `127.0.0.1:${links.peers.port}`,
    ADIT_EDGE_FOLDER: createFolder(t),
    ADIT_EDGE_WORKERS: name === EDGE_WITH_WORKERS ? '2' : '1',
  }
  const start = async () => {
    const started = startProcess(t, ['edge', '--json'], env)
    await started.waitFor(/^\{.*\}$/m)
    if (name === EDGE_WITH_WORKERS) await started.waitFor(/"worker listening"/, 'stderr')
    return started
  }
  let running = await start()
  return {
    ...{ name, group, port, links, isOut: false, outage: new AbortController() },
    processes() {
      const main = running.child.pid as number
      return { main, workers: workersOf(main) }
    },
    async start() {
      running = await start()
    },
    async end(signal) {
      running.child.kill(signal)
      await running.ended
    },
  }
}

/** The local server says which tunnel it belongs to, after as many milliseconds as the path says. */
async function deployTunnel(
  t: TestContext,
  { name, ...tunnel }: Pick<TestTunnel, 'workspace' | 'group' | 'hasPassword'> & { name: string },
  apiKey: string,
  edge: TestEdge,
): Promise<TestTunnel> {
  const received = new Map<string, number>()
  let host = ''
  const server = createServer(async (request, response) => {
    const [, delay, id = ''] = (request.url ?? '').split('/')
    received.set(id, (received.get(id) ?? 0) + 1)
    request.resume()
    if (!request.complete) await once(request, 'end').catch(() => {})
    setTimeout(() => response.end(host), Number(delay))
  })
  const [user = '', password = ''] = PASSWORD.split(':')
  const opened = await openTunnel({
    ...{ edge: edge.links.clients.url, apiKey, name, target: await listen(t, server), drainMs: 0 },
    ...(tunnel.hasPassword && { basicAuth: { user, password } }),
  })
  atEnd(t, () => opened.close())
  host = opened.host
  return { ...tunnel, host, received }
}

/** Waits until each tunnel is open at as many edges as it may be. Returns the ids of the tunnels by host. */
export async function untilOpen({ services, edges, tunnels }: EdgeCluster): Promise<Map<string, string>> {
  const ids = new Map<string, string>()
  const isComplete = async () => {
    ids.clear()
    const all = (await Array.fromAsync(listAllOpen(services))).flat()
    for (const open of all) {
      const { hostname } = new URL(open.url)
      const { group } = tunnels.find(({ host }) => host === hostname) as TestTunnel
      const edgesMax = Math.min(2, edges.filter((edge) => edge.group === group).length)
      if (open.edges.length !== edgesMax) return false
      ids.set(hostname, open.id)
    }
    return all.length === tunnels.length
  }
  await until('all tunnels are open at two edges', isComplete, 90_000)
  return ids
}
