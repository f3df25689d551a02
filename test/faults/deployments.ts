// Deployments for scenarios: the processes, their database and the faults that can be injected.

import { createLog } from '../../src/lib/log.ts'
import { readConfig } from '../../src/server/config/server.ts'
import { createKey } from '../../src/server/domain/keys/lifecycle.ts'
import { createEdge } from '../../src/server/domain/tunnels/edges.ts'
import { createWorkspace } from '../../src/server/domain/workspaces/manage.ts'
import { openServices } from '../../src/server/services.ts'
import { operator, recordVerified } from '../support/api/server.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { createDatabase } from '../support/databases/create.ts'
import { SECRET } from '../support/databases/migrated-databases.ts'
import { createCluster } from '../support/databases/postgres.ts'
import { startRelay } from '../support/network/relay.ts'
import { databaseFaults, type FaultSchedule, linkFaults, nodeFaults } from './injection.ts'
import { type Node, startNode } from './nodes.ts'
import type { ArchivableWorkspace } from './scenario/archiving.ts'
import type { Edge, Key } from './scenario/calls.ts'

const EDGES = 5
/**
 * Several, because a write locks the acting key: with a single one, a paused node would block all clients.
 */
const ADMIN_KEYS = 6
const ARCHIVABLE_WORKSPACES = 3

export interface Deployment {
  nodes: Node[]
  /** Direct URL, without injected faults. */
  database: string
  workspace: string
  workspaceId: string
  /** They create and revoke the others, and are never revoked. */
  adminKeys: Key[]
  /** Others, which are archived and restored. */
  archivable: ArchivableWorkspace[]
  edges: Edge[]
  schedules: FaultSchedule[]
}

/** Each node connects to the database through its own relay. */
export async function deployOnPostgres(t: Test, count: number, env = {}): Promise<Deployment> {
  // Processes are killed, machines are not: what the operating system has is safe without fsync.
  // Few connections, so that a fault can use all of them.
  const cluster = await createCluster(['fsync=off', 'max_connections=120'])
  atEnd(t, () => cluster.remove())
  await cluster.start()
  const database = `${cluster.url}/postgres`
  const seeded = await seed(database)
  const links = await Promise.all(
    names(count).map(async (name) => {
      const relay = await startRelay(t, cluster.url)
      const relayed = new URL(database)
      relayed.port = relay.port
      return { relay, node: await startNode(t, name, { ...env, ADIT_DATABASE_URL: relayed.href }) }
    }),
  )
  const nodes = links.map(({ node }) => node)
  const schedules = [nodeFaults(nodes), linkFaults(links), databaseFaults(cluster)]
  return { ...seeded, nodes, database, schedules }
}

/** Servers on one file: the second has two workers. */
export async function deployOnSqlite(t: Test, count = 2): Promise<Deployment> {
  const database = await createDatabase(t, 'sqlite')
  const seeded = await seed(database)
  const nodes = await Promise.all(
    names(count).map((name, index) =>
      startNode(t, name, { ADIT_DATABASE_URL: database, ADIT_WORKERS: String(index + 1) }),
    ),
  )
  return { ...seeded, nodes, database, schedules: [nodeFaults(nodes)] }
}

export const names = (count: number) => Array.from({ length: count }, (_, index) => `node-${index + 1}`)

export const openServicesOn = (database: string) =>
  openServices(
    readConfig({
      ADIT_DATABASE_URL: database,
      ADIT_SECRET: SECRET,
      // A long run creates more keys than the default limit allows.
      ADIT_KEYS_PER_WORKSPACE: '1000000',
    }),
    createLog('silent'),
    10_000,
  )

export async function seed(database: string) {
  const services = await openServicesOn(database)
  const { id, slug } = await createWorkspace(services, operator, { slug: 'acme', provisioned: true })
  const adminKeys: Key[] = []
  for (let index = 1; index <= ADMIN_KEYS; index++)
    adminKeys.push(
      await createKey({ ...services, actor: operator, workspaceId: id }, { label: `admin-${index}` }),
    )
  const archivable: ArchivableWorkspace[] = []
  for (let index = 1; index <= ARCHIVABLE_WORKSPACES; index++) {
    const other = await createWorkspace(services, operator, { slug: `other-${index}`, provisioned: true })
    const ctx = { ...services, actor: operator, workspaceId: other.id }
    archivable.push({ slug: other.slug, keys: [await createKey(ctx), await createKey(ctx)] })
  }
  const edges: Edge[] = []
  for (let index = 1; index <= EDGES; index++)
    edges.push(await createEdge(services, operator, `edge-${index}`))
  await recordVerified({ services })
  await services.store.close()
  return { workspace: slug, workspaceId: id, adminKeys, archivable, edges }
}
