// Where a scenario takes place: the processes, their database, and what can be done to both.
import { readConfig } from '../../src/config.ts'
import { createEdge } from '../../src/domain/edges.ts'
import { createKey } from '../../src/domain/keys.ts'
import { createWorkspace } from '../../src/domain/workspaces.ts'
import { createLog } from '../../src/log.ts'
import { openServices } from '../../src/services.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { createDatabase, SECRET } from '../support/databases.ts'
import { createCluster } from '../support/postgres.ts'
import { startRelay } from '../support/relay.ts'
import { operator } from '../support/server.ts'
import type { Edge, Key } from './calls.ts'
import { type Lane, troubleDatabase, troubleNodes, troubleWires } from './injection.ts'
import { type Node, startNode } from './nodes.ts'

const EDGES = 5
/** Several, because whatever a key does holds it: with one, a node that is frozen in the middle would hold up everybody. */
const FIRST_KEYS = 6

export interface Deployment {
  nodes: Node[]
  /** The straight way to it, which nobody disturbs. */
  database: string
  workspace: string
  /** Make and revoke the others, and are never revoked themselves. */
  first: Key[]
  edges: Edge[]
  lanes: Lane[]
}

/** Each node reaches the database over a wire of its own. */
export async function deployOnPostgres(t: Test, count: number, env = {}): Promise<Deployment> {
  // Processes die here, machines do not: what was handed to the operating system is safe.
  const cluster = await createCluster(['fsync=off'])
  atEnd(t, () => cluster.remove())
  await cluster.start()
  const database = `${cluster.url}/postgres`
  const inhabitants = await populate(database)
  const wires = await Promise.all(
    names(count).map(async (name) => {
      const relay = await startRelay(t, cluster.url)
      const wired = new URL(database)
      wired.port = relay.port
      return { relay, node: await startNode(t, name, { ...env, ADIT_DATABASE_URL: wired.href }) }
    }),
  )
  const nodes = wires.map(({ node }) => node)
  const lanes = [troubleNodes(nodes), troubleWires(wires), troubleDatabase(cluster)]
  return { ...inhabitants, nodes, database, lanes }
}

export async function deployOnSqlite(t: Test, count: number): Promise<Deployment> {
  const database = await createDatabase(t, 'sqlite')
  const inhabitants = await populate(database)
  const nodes = await Promise.all(
    names(count).map((name) => startNode(t, name, { ADIT_DATABASE_URL: database })),
  )
  return { ...inhabitants, nodes, database, lanes: [troubleNodes(nodes)] }
}

const names = (count: number) => Array.from({ length: count }, (_, index) => `node-${index + 1}`)

async function populate(database: string) {
  const config = readConfig({ ADIT_DATABASE_URL: database, ADIT_SECRET: SECRET })
  const services = await openServices(config, createLog('silent'), 10_000)
  const { id, slug } = await createWorkspace(services, operator, { slug: 'acme', provisioned: true })
  const first: Key[] = []
  for (let index = 1; index <= FIRST_KEYS; index++)
    first.push(await createKey({ ...services, actor: operator, workspaceId: id }, `first-${index}`))
  const edges: Edge[] = []
  for (let index = 1; index <= EDGES; index++)
    edges.push(await createEdge(services, operator, `edge-${index}`))
  await services.store.close()
  return { workspace: slug, first, edges }
}
