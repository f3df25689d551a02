// Seeds a PostgreSQL database.
import pg from 'pg'
import type { SeededKeys } from './keys.ts'
import * as plans from './plan.ts'

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
           'ws_' || lpad((${plans.ownerSql('n', plan.workspaces)})::text, 26, '0'), 'key ' || n, hash, ${now},
           'operator', 'bench', 'xxxx'
         from unnest($1::int[], $2::text[]) as given (n, hash)`,
        [
          Array.from({ length: Math.min(CHUNK, plan.keys - start) }, (_, index) => start + index + 1),
          seeded.hashes.slice(start, Math.min(start + CHUNK, plan.keys)),
        ],
      )
    await client.query('vacuum analyze')
  })
