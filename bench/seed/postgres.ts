// Seeds a PostgreSQL database.
import pg from 'pg'
import type { SeededKeys } from './keys.ts'
import * as plans from './plan.ts'

const { sql } = plans
const CHUNK = 20_000

export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

export const seedPostgres = (url: string, plan: plans.Plan, seeded: SeededKeys) =>
  withClient(url, async (client) => {
    const now = Date.now()
    await client.query('set synchronous_commit = off')
    await client.query(`
      insert into workspaces (id, slug, name, created_at, provisioned_at)
      select 'ws_' || lpad(n::text, 26, '0'), 'w' || n, 'Workspace ' || n, ${now}, ${now}
      from generate_series(1, ${plan.workspaces}) as n`)
    await client.query('insert into edges (id, name, hash, created_at) values ($1, $2, $3, $4)', [
      `edge_${'1'.padStart(26, '0')}`,
      'bench',
      seeded.edge.hash,
      now,
    ])
    await client.query(plans.verifiedSql)
    if (plan.keys > seeded.keys.length) throw new Error('the plan has more keys than are created')
    for (let start = 0; start < plan.keys; start += CHUNK)
      await client.query(
        `insert into api_keys (id, workspace_id, label, hash, created_at, created_by_kind, created_by, last_four)
         select 'tok_' || lpad(n::text, 26, '0'),
           'ws_' || lpad((${sql.owner('n', plan.workspaces)})::text, 26, '0'), 'key ' || n, hash, ${now},
           'operator', 'bench', 'xxxx'
         from unnest($1::int[], $2::text[]) as given (n, hash)`,
        [
          Array.from({ length: Math.min(CHUNK, plan.keys - start) }, (_, index) => start + index + 1),
          seeded.hashes.slice(start, Math.min(start + CHUNK, plan.keys)),
        ],
      )
    await addEdges(client, plan)
    await client.query('vacuum analyze')
  })

/** In order of arrival: each edge reports all of its workspaces. */
async function addEdges(client: pg.Client, { edgesADay = 0 }: plans.Plan): Promise<void> {
  if (edgesADay === 0) return
  const { from, count } = plans.SHARED
  const workspace = "'ws_' || lpad(ws::text, 26, '0')"
  const shared = `unnest(cast($1 as bigint[])) as day
    cross join generate_series(${from}, ${from + count - 1}) as ws`
  await client.query(
    `insert into usage_counters
     select ${workspace}, day, 'edge_' || lpad((100 + edge)::text, 26, '0'), 'e-1', ${plans.countersSql()}
     from generate_series(1, ${edgesADay}) as edge cross join ${shared}`,
    [plans.reportedDays()],
  )
  await client.query(
    `insert into usage_days
       (workspace_id, day, requests, bytes_in, bytes_out, events, last_seen, peak_tunnels)
     select ${workspace}, day, ${plans.countersSql(edgesADay)}, ${plans.PEAK_TUNNELS} from ${shared}`,
    [plans.reportedDays()],
  )
}

/** A total for each of the last days of workspace 1. */
export const seedDays = (url: string, days: number) =>
  withClient(url, async (client) => {
    const first = plans.today() - (days - 1) * plans.DAY_MS
    await client.query(
      `insert into usage_days
         (workspace_id, day, requests, bytes_in, bytes_out, events, last_seen, peak_tunnels)
       select $1, day, ${plans.countersSql(plans.COUNTERS_A_DAY)}, ${plans.PEAK_TUNNELS}
       from generate_series(${first}::bigint, ${plans.today()}, ${plans.DAY_MS}) as day`,
      [plans.workspaceId(1)],
    )
    await client.query('vacuum analyze')
  })
