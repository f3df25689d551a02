// Seeds an SQLite database, with statements that generate their rows.
import { closeSync, fsyncSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { SeededKeys } from './keys.ts'
import * as plans from './plan.ts'

const { COUNTER } = plans

export function seedSqlite(path: string, plan: plans.Plan, seeded: SeededKeys): void {
  const database = new DatabaseSync(path)
  try {
    database.exec('pragma synchronous = off; pragma cache_size = -200000; pragma temp_store = memory')
    // With a WAL everything would be written twice.
    database.exec('pragma journal_mode = off')
    database.exec('begin')
    addWorkspaces(database, plan)
    addKeys(database, plan, seeded)
    addHistory(database, plan)
    database.exec('commit; analyze; pragma journal_mode = wal')
  } finally {
    database.close()
  }
  // So that the page cache is not written back during a measurement.
  const file = openSync(path, 'r+')
  fsyncSync(file)
  closeSync(file)
}

const numbers = (from: number, to: number, name = 'numbers') =>
  `${name}(n) as (select ${from} union all select n + 1 from ${name} where n < ${to})`

function addWorkspaces(database: DatabaseSync, { workspaces }: plans.Plan): void {
  const now = Date.now()
  database.exec(`
    with recursive ${numbers(1, workspaces)}
    insert into workspaces (id, slug, name, created_at, provisioned_at)
    select 'ws_' || printf('%026d', n), 'w' || n, 'Workspace ' || n, ${now}, ${now} from numbers`)
}

function addKeys(database: DatabaseSync, { workspaces, keys }: plans.Plan, seeded: SeededKeys): void {
  const now = Date.now()
  database
    .prepare('insert into edges (id, name, hash, created_at) values (?, ?, ?, ?)')
    .run(`edge_${'1'.padStart(26, '0')}`, 'bench', seeded.edge.hash, now)
  database.exec(plans.verifiedSql)
  const real = Math.min(keys, seeded.keys.length)
  const row = (hash: string) => `
    select 'tok_' || printf('%026d', n), 'ws_' || printf('%026d', ${plans.ownerSql('n', workspaces)}),
      'key ' || n, ${hash}, ${now}, 'operator', 'bench', 'xxxx'`
  const into =
    'insert into api_keys (id, workspace_id, label, hash, created_at, created_by_kind, created_by, last_four)'
  const insert = database.prepare(`${into} ${row('?2')} from (select ?1 as n)`)
  for (let index = 0; index < real; index += 1) insert.run(index + 1, seeded.hashes[index] as string)
  if (keys > real)
    database.exec(
      `with recursive ${numbers(real + 1, keys)} ${into} ${row('lower(hex(randomblob(32)))')} from numbers`,
    )
}

function addHistory(database: DatabaseSync, { withHistory }: plans.Plan): void {
  if (withHistory === 0) return
  const today = plans.today()
  // In the order of the primary key, so that every row is appended.
  const days = `select w.n as w, ${today} - d.n * ${plans.DAY_MS} as day
    from ws as w cross join days as d where w.n = 1 or d.n >= ${plans.REPORTED_DAYS}`
  const series = `with recursive ${numbers(1, withHistory, 'ws')},
    days(n) as (select ${plans.HISTORY_DAYS - 1} union all select n - 1 from days where n > 0),
    ${numbers(1, plans.EDGES, 'edge')}, ${numbers(1, plans.EPOCHS, 'epoch')}`
  database.exec(`
    ${series}
    insert into usage_counters
      (workspace_id, day, edge_id, epoch, requests, bytes_in, bytes_out, events, last_seen)
    select 'ws_' || printf('%026d', w), day, 'edge_' || printf('%026d', 100 + edge.n), 'e-' || epoch.n,
      ${COUNTER.requests}, ${COUNTER.bytesIn}, ${COUNTER.bytesOut}, ${COUNTER.events},
      day + ${plans.LAST_SEEN_AFTER_MS}
    from (${days}) cross join edge cross join epoch`)
  const all = (each: number) => each * plans.COUNTERS_A_DAY
  database.exec(`
    ${series}
    insert into usage_days (workspace_id, day, requests, bytes_in, bytes_out, events, peak_tunnels, last_seen)
    select 'ws_' || printf('%026d', w), day, ${all(COUNTER.requests)}, ${all(COUNTER.bytesIn)},
      ${all(COUNTER.bytesOut)}, ${all(COUNTER.events)}, ${plans.PEAK_TUNNELS}, day + ${plans.LAST_SEEN_AFTER_MS}
    from (${days})`)
}
