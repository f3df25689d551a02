// Databases on a real Citus cluster, for `npm run test:citus`. Each is a schema of the database
// ADIT_CITUS_URL: a second database would need an administrator's connection to every worker.
import { randomBytes } from 'node:crypto'
import { distribute } from '../../../src/server/store/engine/postgres/citus.ts'
import { atEnd, type Test } from '../cleanup.ts'
import { type Relay, startRelay } from '../network/relay.ts'
import { query } from './client.ts'
import { migrate } from './migrate.ts'

/** Fewer than the default, so that creating tables takes less time. */
const SHARDS = 4

export const coordinatorUrl = (): string => process.env.TEST_CITUS_URL as string

/** An empty schema. Returns the value for ADIT_DATABASE_URL. */
export async function createCitusSchema(t: Test): Promise<string> {
  const name = `adit_test_${randomBytes(6).toString('hex')}`
  await onCoordinator(`create schema ${name}`)
  atEnd(t, () => dropSchema(name))
  const url = new URL(coordinatorUrl())
  // pg decodes %20, but not the + that `searchParams` writes for a space.
  const settings = { search_path: name, 'citus.shard_count': SHARDS, 'citus.enable_stat_counters': 'on' }
  const options = Object.entries(settings).map(([setting, value]) => `-c%20${setting}=${value}`)
  url.search = `options=${options.join('%20')}`
  return url.href
}

/** With the schema of this version, distributed. */
export async function createDistributedSchema(t: Test): Promise<string> {
  const url = await createCitusSchema(t)
  await migrate(url)
  await distribute(url, () => {})
  return url
}

/** Sessions that a test left behind must not block it. */
const dropSchema = (name: string) =>
  onCoordinator(`set lock_timeout = '20s'; drop schema if exists ${name} cascade`)

/** Drops tables, not the schema `public`: the extension is in it. */
export async function emptyDatabase(url: string): Promise<void> {
  const schemas = await query(url, "select nspname from pg_namespace where nspname like 'adit\\_test\\_%'")
  for (const { nspname } of schemas) await query(url, `drop schema ${nspname} cascade`)
  const tables = await query(url, "select tablename from pg_tables where schemaname = 'public'")
  if (tables.length === 0) return
  await query(url, `drop table ${tables.map(({ tablename }) => `public.${tablename}`).join(', ')} cascade`)
}

export const onCoordinator = (statement: string) => query(coordinatorUrl(), statement)

/** Shard and worker of the usage of some workspaces. */
export const listShards = (
  url: string,
  workspaceIds: string[],
): Promise<{ shard: string; worker: number }[]> =>
  query(
    url,
    `select shard, nodeport as worker
     from unnest($1::text[]) with ordinality as workspaces (id, position)
     cross join get_shard_id_for_distribution_column('usage_counters', id) as shard
     join pg_dist_shard_placement on shardid = shard order by position`,
    [workspaceIds],
  )

/** Puts a relay between the coordinator and each worker, until the test ends. */
export async function relayWorkers(t: Test): Promise<Relay[]> {
  const workers = await onCoordinator(
    'select nodeid, nodename, nodeport from pg_dist_node where groupid > 0 order by nodeid',
  )
  const relays: Relay[] = []
  for (const { nodename, nodeport } of workers)
    relays.push(await startRelay(t, `http://${nodename}:${nodeport}`))
  const connect = async (addresses: readonly (readonly [host: string, port: number])[]) => {
    for (const [index, address] of addresses.entries())
      await query(coordinatorUrl(), `select citus_update_node(${workers[index].nodeid}, $1, $2)`, [
        ...address,
      ])
    await onCoordinator('select start_metadata_sync_to_all_nodes()')
  }
  atEnd(t, async () => {
    for (const relay of relays) {
      relay.release()
      relay.mend()
    }
    await connect(workers.map(({ nodename, nodeport }) => [nodename, nodeport]))
  })
  await connect(relays.map(({ port }) => ['127.0.0.1', Number(port)]))
  return relays
}
