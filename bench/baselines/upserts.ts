// The same counters by plain upserts of a report's rows: a prepared statement and a commit for each, in a
// table like ours, without HTTP and without a roll-up.
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { REPORTED, reportedDays, workspaceId } from '../seed/plan.ts'

const { database } = JSON.parse(process.argv[2] as string) as { database: string }

const rows = reportedDays().flatMap((day) =>
  Array.from({ length: REPORTED.count }, (_, index) => ({
    workspaceId: workspaceId(REPORTED.from + index),
    day,
  })),
)

const TABLE = `create table if not exists bench_counters (
  workspace_id text not null, day bigint not null, edge_id text not null, epoch text not null,
  requests bigint not null, bytes_in bigint not null, bytes_out bigint not null, events bigint not null,
  last_seen bigint, primary key (workspace_id, day, edge_id, epoch))`

const COLUMNS = ['requests', 'bytes_in', 'bytes_out', 'events', 'last_seen']
const greatest = (name: string) =>
  `${name} = case when excluded.${name} > bench_counters.${name} ` +
  `then excluded.${name} else bench_counters.${name} end`
const WIDTH = 9
const upsertWith = (parameter: (position: number) => string) => `insert into bench_counters values
  ${Array.from({ length: REPORTED.count }, (_, row) => {
    const parameters = Array.from({ length: WIDTH }, (_, column) => parameter(row * WIDTH + column + 1))
    return `(${parameters})`
  })}
  on conflict (workspace_id, day, edge_id, epoch) do update set ${COLUMNS.map(greatest).join(', ')}`

let next = 0
/** Values that grow with each round, like a running total. */
function nextRow(): (string | number)[] {
  const { workspaceId, day } = rows[next % rows.length] as (typeof rows)[number]
  const n = 1_000 + Math.floor(next / rows.length)
  next += 1
  return [workspaceId, day, 'edge_bench', 'e-1', n, n * 10_000 + 4_821, n * 10_000 + 9_377, n, day + n]
}

const nextRows = () => Array.from({ length: REPORTED.count }, nextRow).flat()

const write = database.startsWith('sqlite:') ? openSqlite() : await openPostgres()
process.on('message', async ({ seconds }: { seconds: number }) => {
  const began = performance.now()
  const written = await write(began + seconds * 1000)
  process.send?.({ perSecond: (written * 1000) / (performance.now() - began) })
})
process.once('disconnect', () => process.exit())
process.send?.({})

function openSqlite() {
  const file = new DatabaseSync(database.slice('sqlite:'.length), { timeout: 5_000 })
  file.exec('pragma journal_mode = wal; pragma synchronous = full')
  file.exec(`${TABLE.replaceAll('bigint', 'integer')} strict, without rowid`)
  const upsert = file.prepare(upsertWith(() => '?'))
  return async (deadline: number) => {
    let written = 0
    for (; performance.now() < deadline; written += REPORTED.count) upsert.run(...nextRows())
    return written
  }
}

async function openPostgres() {
  const client = new pg.Client(database)
  await client.connect()
  await client.query(TABLE)
  const text = upsertWith((position) => `$${position}`)
  return async (deadline: number) => {
    let written = 0
    for (; performance.now() < deadline; written += REPORTED.count)
      await client.query({ name: 'upsert', text, values: nextRows() })
    return written
  }
}
