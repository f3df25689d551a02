// What servers acknowledged to clients. Compared with the database: nothing may be lost or done twice.
import assert from 'node:assert/strict'
import pg from 'pg'
import { encodeHour } from '../../../src/server/store/usage/hours.ts'
import type { Call } from './server.ts'

export interface Ledger {
  /** Raw keys by id. */
  readonly created: Map<string, string>
  readonly revoked: Set<string>
  /** The last reported total of each client. */
  readonly bytes: number[]
  /** The last reported number of open tunnels of each client; each has a minute of its own. */
  readonly open: number[]
}

/** For databases that, besides one initial key, only these clients write to. */
export async function assertKept(ledger: Ledger, database: string): Promise<void> {
  const { created, revoked, bytes, open } = ledger
  const client = new pg.Client(database)
  await client.connect()
  const column = async (statement: string): Promise<unknown[]> =>
    (await client.query({ text: statement, rowMode: 'array' })).rows.map(([value]) => value).toSorted()
  const [first] = (await client.query('select id from api_keys order by created_at, id limit 1')).rows
  const keys = `select id from api_keys where id <> '${first.id}'`
  const acts = (action: string) =>
    `select target_id from audit_log where action = '${action}' and target_id <> '${first.id}'`
  const total = bytes.reduce((sum, each) => sum + each, 0)
  const revokedSorted = [...revoked].toSorted()
  for (const [statement, expected] of [
    [keys, [...created.keys()].toSorted()],
    [acts('key.created'), [...created.keys()].toSorted()],
    [`${keys} and revoked_at is not null`, revokedSorted],
    [acts('key.revoked'), revokedSorted],
    ["select subject_id from change_log where kind = 'key'", revokedSorted],
    ['select sum(bytes_in)::float8 from usage_counters', [total]],
    ['select sum(bytes_in)::float8 from usage_days', [total]],
    ['select max(peak_tunnels)::float8 from usage_days', [Math.max(...open)]],
    ["select distinct open from usage_hours where edge_id = ''", [encodeHour(open)]],
  ] as const)
    assert.deepEqual(await column(statement), expected, statement)
  await client.end()
}

/** A sample keeps the check quick. */
const VALID_KEYS_CHECKED = 40

/** Asserts that a node accepts exactly the acknowledged keys, whichever node acknowledged them. */
export async function assertKnown(ledger: Ledger, call: Call): Promise<void> {
  const { created, revoked, bytes, open } = ledger
  const total = bytes.reduce((sum, each) => sum + each, 0)
  const usage = (await call('GET', '/usage?days=2')).json
  assert.deepEqual([usage.totalBytes, usage.peakTunnels], [total, Math.max(...open)])
  const valid = [...created.keys()].filter((id) => !revoked.has(id))
  for (const id of [...revoked, ...valid.slice(-VALID_KEYS_CHECKED)]) {
    const { status } = await call('GET', '/workspace', { key: created.get(id) as string })
    assert.equal(status, revoked.has(id) ? 401 : 200, id)
  }
}
