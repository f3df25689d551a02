// No query scans a table that grows with traffic, users or time. The queries are recorded at the drivers
// while every function of the modules below is called once, and then explained on tables with thousands of
// rows.
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { sql } from 'kysely'
import type pg from 'pg'
import * as challenges from '../../../src/server/store/accounts/challenges.ts'
import * as links from '../../../src/server/store/accounts/links.ts'
import * as sessions from '../../../src/server/store/accounts/sessions.ts'
import * as twoFactors from '../../../src/server/store/accounts/two-factors.ts'
import * as audit from '../../../src/server/store/audit/entries.ts'
import * as auditExport from '../../../src/server/store/audit/export.ts'
import * as changeLog from '../../../src/server/store/change-log/entries.ts'
import * as locationLog from '../../../src/server/store/cluster/location-log.ts'
import * as peers from '../../../src/server/store/cluster/peers.ts'
import * as devices from '../../../src/server/store/device-authorizations.ts'
import type { Store, Tx } from '../../../src/server/store/engine/store.ts'
import * as idempotency from '../../../src/server/store/keys/idempotency.ts'
import * as keyRequests from '../../../src/server/store/keys/requests.ts'
import * as keys from '../../../src/server/store/keys/rows.ts'
import * as retention from '../../../src/server/store/maintenance/retention.ts'
import * as notices from '../../../src/server/store/notices/key-notices.ts'
import * as mailQueue from '../../../src/server/store/notices/mail-queue.ts'
import * as abandoned from '../../../src/server/store/tunnels/abandoned.ts'
import * as tunnelAdmission from '../../../src/server/store/tunnels/admission.ts'
import * as tunnelCounts from '../../../src/server/store/tunnels/counts.ts'
import * as edgeSessions from '../../../src/server/store/tunnels/edge-sessions.ts'
import * as edgeWorkspaces from '../../../src/server/store/tunnels/edge-workspaces.ts'
import * as holders from '../../../src/server/store/tunnels/holders.ts'
import * as instructions from '../../../src/server/store/tunnels/instructions.ts'
import * as tunnelLists from '../../../src/server/store/tunnels/lists.ts'
import * as tunnelNames from '../../../src/server/store/tunnels/names.ts'
import * as tunnels from '../../../src/server/store/tunnels/rows.ts'
import * as usage from '../../../src/server/store/usage/commit.ts'
import * as usageReset from '../../../src/server/store/usage/reset.ts'
import * as webhookEndpoints from '../../../src/server/store/webhooks/endpoints.ts'
import * as webhookEvents from '../../../src/server/store/webhooks/events.ts'
import * as webhookPositions from '../../../src/server/store/webhooks/positions.ts'
import * as webhookQueue from '../../../src/server/store/webhooks/queue.ts'
import { openTestServices } from '../../support/api/server.ts'
import { mergeReport } from '../../support/api/usage.ts'
import { withClient } from '../../support/databases/client.ts'
import { engines } from '../../support/databases/create.ts'
import { type Recorded, recordQueries } from '../../support/databases/recorded-queries.ts'
import { pluck } from '../../support/pluck.ts'

/** Enough that reading a page of an index costs less than scanning the table. */
const ROWS = 5_000
const DAY = 86_400_000
const NOW = 100 * DAY

/**
 * Row i of each table: the columns whose values matter. The others that must have one get the same in each
 * row. Workspaces and users have 10 rows each.
 */
const tables: Record<string, Record<string, string>> = {
  users: {
    id: `'u' || i`,
    email: `i || '@x'`,
  },
  workspaces: { id: `'w' || i`, slug: `'w' || i` },
  api_keys: {
    id: `'k' || i`,
    workspace_id: `'w' || (i / 10 + 1)`,
    hash: `'h' || i`,
    created_by_kind: `'user'`,
    created_at: 'i',
    expires_at: `case when i % 5 = 0 then i end`,
    lineage_id: `case when i % 5 = 0 then 'k' || (i / 10) end`,
    user_id: `case when i % 5 = 1 then 'u' || (i / 10 + 1) end`,
  },
  key_requests: {
    id: `'r' || i`,
    workspace_id: `'w' || (i / 10 + 1)`,
    user_id: `'u' || (i / 10 + 1)`,
    created_at: 'i',
    expires_at: 'i',
    state: `case when i % 5 = 0 then 'pending' else 'used' end`,
  },
  sessions: {
    id: `'s' || i`,
    user_id: `'u' || (i / 10 + 1)`,
    token: `'t' || i`,
    created_at: 'i',
    expires_at: 'i',
  },
  verifications: {
    id: `'v' || i`,
    value: `'u' || i`,
    expires_at: 'i',
  },
  two_factors: {
    user_id: `'u' || i`,
  },
  used_codes: { user_id: `'u' || (i / 10 + 1)`, hash: `'h' || i`, at: 'i' },
  links: {
    id: `'l' || i`,
    hash: `'h' || i`,
    purpose: `case when i % 2 = 0 then 'join' else 'reset' end`,
    email: `(i / 10) || '@x'`,
    workspace_id: `case when i % 2 = 0 then 'w' || (i / 10 + 1) end`,
    creator_id: `'u' || (i / 10)`,
    created_at: 'i',
    expires_at: 'i',
    ended_at: `case when i % 3 = 0 then i end`,
  },
  device_authorizations: {
    hash: `'h' || i`,
    user_code: `'c' || i`,
    created_at: 'i',
    expires_at: 'i',
    state: `'pending'`,
  },
  audit_log: {
    id: `'aud_' || (10000 + i)`,
    workspace_id: `case when i % 50 > 0 then 'w' || (i / 10 + 1) end`,
    at: 'i',
    actor_kind: `'key'`,
    actor_id: `'k' || i`,
    action: `'key.created'`,
    target_id: `'k' || i`,
    detail: `'x'`,
    position: `case when i <= 4900 then i end`,
  },
  notices: {
    kind: `'key-expiry'`,
    subject_id: `'k' || i`,
    workspace_id: `'w' || (i / 10 + 1)`,
    created_at: 'i',
    digest_id: `'d' || (i / 10)`,
  },
  notice_mails: {
    digest_id: `'d' || i`,
    user_id: `'u' || (i / 10 + 1)`,
    workspace_id: `'w' || (i / 10 + 1)`,
    created_at: 'i',
    due_at: `case when i % 100 = 0 then i end`,
  },
  webhook_endpoints: {
    id: `'whk_' || i`,
    workspace_id: `'w' || (i / 10 + 1)`,
    created_at: 'i',
    last_position: 'i',
    next_position: 'i',
    due_at: `case when i % 100 = 0 then i end`,
  },
  webhook_deliveries: {
    endpoint_id: `'whk_' || (i / 10)`,
    id: `'dlv_' || i`,
    position: `case when i <= 4900 then i end`,
    sequence: 'i',
    event_id: `'evt_' || i`,
    type: `'key.created'`,
    created_at: 'i',
  },
  idempotent_responses: {
    workspace_id: `'w' || (i / 10 + 1)`,
    id: `'a' || i`,
    created_at: 'i',
  },
  change_log: {
    sequence: 'i',
    kind: `'key'`,
    at: 'i',
    checksum: `'m'`,
    previous_checksum: `'m'`,
  },
  edge_sessions: {
    edge_id: `'e' || i`,
    lease_until: `case when i % 10 = 0 then 1 else ${NOW * 1_000} end`,
  },
  edges: { id: `'e' || i`, name: `'n' || i`, hash: `'h' || i`, created_at: '1' },
  edge_workspaces: { edge_id: `'e' || (i / 10 + 1)`, workspace_id: `'w' || i`, verified_at: '1' },
  open_tunnels: {
    edge_id: `'e' || (i / 10 + 1)`,
    id: `'t' || i`,
    workspace_id: `'w' || (i / 5 + 1)`,
    name: `'n' || i`,
    type: `'http'`,
    key_id: `'k' || i`,
    opened_at: 'i',
    tunnel_id: `'t' || i`,
    instruction_sequence: `case when i % 100 = 0 then 0 end`,
  },
  location_log: {
    edge_group: `'g' || (i / 10)`,
    sequence: 'i',
    checksum: `'c'`,
    previous_checksum: `'c'`,
    opened: `'[]'`,
    closed: `'[]'`,
    at: 'i',
  },
  tunnel_names: {
    workspace_id: `'w' || (i / 10 + 1)`,
    name: `'n' || i`,
    created_at: 'i',
    last_used_at: 'i',
    expires_at: `case when i % 10 > 0 then i end`,
  },
  usage_counters: {
    workspace_id: `'w' || (i / 10 + 1)`,
    day: `i % 10 * ${DAY}`,
    edge_id: `'e' || (i % 3)`,
  },
  usage_hours: {
    workspace_id: `'w' || (i / 10 + 1)`,
    hour: 'cast(i / 5 as bigint) * 3600000',
    edge_id: `'e' || i`,
    open: `'1'`,
  },
  usage_days: { workspace_id: `'w' || (i / 10 + 1)`, day: `i % 10 * ${DAY}`, last_seen: '1' },
}

async function fill(store: Store): Promise<void> {
  await store.transaction(async (db) => {
    const schema = await db.introspection.getTables()
    for (const [table, values] of Object.entries(tables)) {
      const required = schema.find(({ name }) => name === table)?.columns ?? []
      const defaults = required
        .filter(({ isNullable, hasDefaultValue }) => !isNullable && !hasDefaultValue)
        .map(({ name, dataType }) => [name, /int/i.test(dataType) ? '1' : `'x'`])
      const columns = { ...Object.fromEntries(defaults), ...values }
      await sql
        .raw(
          `with recursive n (i) as (select 1 union all select i + 1 from n where i < ${ROWS})
           insert into ${table} (${Object.keys(columns).join(', ')})
           select ${Object.values(columns).join(', ')} from n`,
        )
        .execute(db)
    }
    await db.updateTable('change_log_head').set({ sequence: ROWS, checksum: 'm' }).execute()
    await sql.raw('analyze').execute(db)
  })
}

const isQuery = ({ text }: Recorded) => /^\s*(with|select|insert|update|delete)\b/i.test(text)
/** In the order of an index, and only the first rows. */
const isBounded = ({ text }: Recorded) =>
  /from "change_log" order by "sequence"/.test(text) ||
  /from "webhook_deliveries" where "position" is null order by "endpoint_id", "sequence"/.test(text)

interface PlanNode {
  'Node Type': string
  'Relation Name'?: string
  Plans?: PlanNode[]
}

function scannedBy(node: PlanNode): string[] {
  const own = node['Node Type'] === 'Seq Scan' ? [node['Relation Name'] ?? ''] : []
  return [...own, ...(node.Plans ?? []).flatMap(scannedBy)]
}

async function explain(client: pg.Client, { text, values, isPrepared }: Recorded): Promise<PlanNode> {
  const { rows } = isPrepared
    ? await client.query(`explain (generic_plan, format json) ${text}`)
    : await client.query(`explain (format json) ${text}`, values)
  return rows[0]['QUERY PLAN'][0].Plan
}

const planOnPostgres = (url: string, query: Recorded) => withClient(url, (client) => explain(client, query))

function planOnSqlite(path: string, { text }: Recorded): unknown {
  const database = new DatabaseSync(path)
  const plan = database.prepare(`explain query plan ${text}`).all()
  database.close()
  return plan
}

const scansOnPostgres = (url: string, queries: Recorded[]) =>
  withClient(url, async (client) => {
    const found: string[] = []
    for (const query of queries) {
      const scanned = scannedBy(await explain(client, query)).filter(
        (table) => table in tables && !SMALL.has(table),
      )
      if (scanned.length > 0) found.push(`${scanned.join(', ')}: ${query.text}`)
    }
    return found
  })

function scansOnSqlite(path: string, queries: Recorded[]): string[] {
  const database = new DatabaseSync(path)
  const found: string[] = []
  for (const { text } of queries) {
    const plan = database.prepare(`explain query plan ${text}`).all() as { detail: string }[]
    const scans = pluck(plan, 'detail').filter((detail) =>
      /^SCAN (?!\d+ CONSTANT|\d+-ROW VALUES|\(|input)/.test(detail),
    )
    for (const scan of scans) {
      const [, name = ''] = /^SCAN (\S+)/.exec(scan) ?? []
      if (!SMALL.has(name)) found.push(`${scan}: ${text}`)
    }
  }
  database.close()
  return found
}

/** Tables that do not grow with traffic, and results of subqueries. */
const SMALL = new Set([
  'nodes',
  'edges',
  'edge_groups',
  'edge_sessions',
  'session',
  'head',
  'change_log_head',
  'maintenance',
  'active',
  'minutes',
  'unassigned',
  'numbered',
  'written',
  'latest',
  'json_each',
  'CONSTANT',
])

type Calls = Record<string, (db: Tx, store: Store) => unknown>

const page = { limit: 10 }
const ws = 'w7'
const position = { sequence: 4_000, checksum: 'm' }
const link = (db: Tx) => db.selectFrom('links').selectAll().where('hash', '=', 'h8').executeTakeFirstOrThrow()
const entry = (db: Tx) =>
  db.selectFrom('audit_log').selectAll().where('id', '=', 'aud_10007').executeTakeFirstOrThrow()
const sessionReport = {
  session: 's',
  sequence: 2,
  previous: 1,
  version: 'v',
  startedAt: 1,
  peerAddress: null,
  tunnels: 1,
  streams: 1,
  appliedSequence: 1,
  appliedChecksum: 'a',
}
const name = { workspace_id: ws, name: 'n12' }
const pair = { edge_id: 'e1', workspace_id: 'w1' }
const openTunnel = {
  ...name,
  edge_id: 'e2',
  id: 't12',
  sequence: 1,
  type: 'http' as const,
  pool: 0,
  url: 'u',
  key_id: 'k1',
  client_address: 'a',
  client_version: null,
  opened_at: 1,
  client_access: null,
  resume_hash: null,
  session_hash: null,
  tunnel_id: 't12',
  requests: 1,
  bytes_in: 1,
  bytes_out: 1,
  streams: 1,
}
const notice = {
  kind: 'key-expiry',
  subject_id: 'k1',
  dedup_key: '1d',
  workspace_id: ws,
  created_at: NOW,
  digest_id: null,
}
const noticeMail = {
  digest_id: 'd7',
  user_id: 'u7',
  workspace_id: ws,
  created_at: NOW,
  attempts: 1,
  due_at: 1,
}
const delivery = {
  endpoint_id: 'whk_9',
  id: 'dlv_9999',
  event_id: 'evt_1',
  type: 'key.created',
  body: '{}',
  created_at: NOW,
}
const claimed = { id: 'whk_7', claim: 'x' }
const attempt = { url: '', status: 500, error: null, response: null, duration_ms: 1 }
const endpoint = {
  id: 'whk_new',
  workspace_id: ws,
  url: 'https://hooks.example.com',
  description: '',
  events: null,
  secret: 'x',
  created_at: NOW,
  created_by: null,
}
const usageBatch = { workspaceIds: ['w1', 'w2', 'w3'], before: 3 * DAY }

/** A call of every function that runs a query. */
const calls = new Map<object, Calls>()

calls.set(audit, {
  insertAudit: async (db) => audit.insertAudit(db, [{ ...(await entry(db)), id: 'aud_new' }]),
  countRepetition: async (db) => {
    await audit.countRepetition(db, await entry(db), 'aud_14990')
    await audit.countRepetition(db, { ...(await entry(db)), workspace_id: null }, 'aud_14990')
  },
  findRepeated: async (db) => {
    await audit.findRepeated(db, await entry(db), 'aud_14990')
    await audit.findRepeated(db, { ...(await entry(db)), workspace_id: null }, 'aud_14990')
  },
  updateRepeated: async (db) => audit.updateRepeated(db, await entry(db), { count: 2, changes: null }),
  selectEntries: (db) => audit.selectEntries(db).where('audit_log.id', '=', 'aud_1').execute(),
  listAudit: async (db) => {
    await audit.listAudit(db, ws, page)
    await audit.listAudit(db, ws, { ...page, after: 'aud_1' })
    for (const filter of [{ actorId: 'k1' }, { action: 'key.created' }, { targetId: 'k1' }])
      await audit.listAudit(db, ws, { ...page, ...filter })
    await audit.listAudit(db, ws, {
      ...page,
      fromId: 'aud_1',
      beforeId: 'aud_2',
      actorId: 'k',
      action: 'x',
    })
  },
})

calls.set(auditExport, {
  lockExport: auditExport.lockExport,
  setExport: (db) => auditExport.setExport(db, { exportPosition: 5_000, deletedExportPosition: 0 }),
  // Few rows: for more, PostgreSQL would rather scan a table as small as this one.
  assignExportPositions: (db) =>
    auditExport.assignExportPositions(db, { position: 5_000, afterId: '', size: 3 }),
  listExported: (db) => auditExport.listExported(db, { after: 4_800, through: 4_900 }, 20),
  hasEntriesAfter: (db) => auditExport.hasEntriesAfter(db, 4_900, 'key.created'),
  deleteEntriesBefore: async (db) => {
    for (const before of ['aud_10040', 'b']) await auditExport.deleteEntriesBefore(db, before, 3)
  },
})

calls.set(keyRequests, {
  insertRequest: async (db) => {
    const row = await keyRequests.findRequest(db, 'r1')
    await keyRequests.insertRequest(db, { ...(row as keyRequests.RequestRow), id: 'r_new' })
  },
  findRequest: (db) => keyRequests.findRequest(db, 'r1'),
  lockRequest: (db) => keyRequests.lockRequest(db, ws, 'r1'),
  updateRequest: (db) => keyRequests.updateRequest(db, 'r1', { state: 'used' }),
  findOpenRequest: (db) => keyRequests.findOpenRequest(db, ws, 'u1', 100),
  countRequestsSince: (db) => keyRequests.countRequestsSince(db, ws, 'u1', 100),
  listRequestsBy: (db) => keyRequests.listRequestsBy(db, ws, 'u1', 10),
  listPendingRequests: (db) => keyRequests.listPendingRequests(db, ws, 100, 10),
  endRequests: async (db) => {
    await keyRequests.endRequests(db, { userId: 'u1' })
    await keyRequests.endRequests(db, { userId: 'u1', workspaceId: ws })
  },
})

calls.set(changeLog, {
  appendChange: (db) =>
    changeLog.appendChange(db, {
      kind: 'key',
      subjectId: '',
      hash: '',
      expiresAt: null,
      checksum: '',
      at: NOW,
    }),
  appendChanges: (db) => {
    const change = { kind: 'key', subjectId: '', hash: '', expiresAt: null, at: NOW } as const
    return changeLog.appendChanges(db, [
      { ...change, checksum: 'x' },
      { ...change, checksum: 'y' },
    ])
  },
  lockHead: changeLog.lockHead,
  deleteChangesBefore: (db) => changeLog.deleteChangesBefore(db, 100, 200),
  countChangesBefore: (db) => changeLog.countChangesBefore(db, 100),
  readChanges: (db) => changeLog.readChanges(db, position, { sequence: 4_100, checksum: 'm' }),
  readLatest: (db) => changeLog.readLatest(db, position, 10),
  readHead: changeLog.readHead,
  readPosition: (db) => changeLog.readPosition(db, 'node'),
})

calls.set(devices, {
  insertDevice: async (db) => {
    const device = (await devices.findDevice(db, 'h1')) ?? assert.fail('no device')
    await devices.insertDevice(db, { ...device, hash: 'h', user_code: 'c' })
  },
  findDevice: (db) => devices.findDevice(db, 'h1'),
  findDeviceByUserCode: (db) => devices.findDeviceByUserCode(db, 'c1'),
  lockDevice: async (db) => {
    await devices.lockDevice(db, { hash: 'h1' })
    await devices.lockDevice(db, { user_code: 'c1' })
  },
  updateDevice: (db) => devices.updateDevice(db, 'h1', { state: 'denied' }),
  hasUnexpiredDevices: (db) => devices.hasUnexpiredDevices(db, 4_990, 10),
})

calls.set(idempotency, {
  storeResponse: (db) => idempotency.storeResponse(db, ws, { id: 'a', encrypted: '', createdAt: NOW }),
  deleteResponsesBefore: (db) => idempotency.deleteResponsesBefore(db, ws, 100),
})

calls.set(keys, {
  insertKey: async (db) => {
    const key = await keys.findKeyById(db, 'k1')
    const { now: _now, ...row } = key ?? assert.fail('no key')
    await keys.insertKey(db, { ...row, id: 'k', hash: 'h' })
  },
  findKeyByHash: (db) => keys.findKeyByHash(db, 'h1'),
  findKeysToVerify: (db) => keys.findKeysToVerify(db, ['h1', 'h2']),
  findKeyById: (db) => keys.findKeyById(db, 'k1'),
  listKeys: async (db) => {
    await keys.listKeys(db, ws, page)
    await keys.listKeys(db, ws, { ...page, after: 'k1' })
    await keys.listKeys(db, ws, { ...page, after: 'k1', withRevoked: false })
    await keys.listKeys(db, ws, { ...page, userId: 'u1' })
  },
  listAllKeys: async (db) => {
    await keys.listAllKeys(db, page)
    await keys.listAllKeys(db, { ...page, after: 'k1' })
  },
  listKeyLabels: (db) => keys.listKeyLabels(db, ws, ['k1', 'k2']),
  listActiveByLineage: (db) => keys.listActiveByLineage(db, ws, ['k1', 'k2']),
  countActiveKeys: async (db) => {
    await keys.countActiveKeys(db, ws, 10)
    await keys.countActiveKeys(db, ws, 10, 'u1')
  },
  revokeKeys: (db) => keys.revokeKeys(db, ['k1', 'k2'], NOW),
  revokePersonalKeys: async (db) => {
    await keys.revokePersonalKeys(db, { userId: 'u1' }, NOW)
    await keys.revokePersonalKeys(db, { userId: 'u1', workspaceId: ws }, NOW)
  },
  revokeKey: (db) => keys.revokeKey(db, { workspaceId: ws, id: 'k1' }, NOW),
  lockKey: async (db) => {
    await keys.lockKey(db, { workspaceId: ws, id: 'k1' }, 'shared')
    await keys.lockKey(db, { workspaceId: ws, id: 'k1' }, 'exclusive')
  },
  lockKeyRow: (db) => keys.lockKeyRow(db, { workspaceId: ws, id: 'k1' }),
  updateKey: (db) => keys.updateKey(db, { workspaceId: ws, id: 'k1' }, { expires_at: NOW }),
  lockKeysShared: (db) => keys.lockKeysShared(db, ['k1', 'k2']),
  lockWorkspaceKeys: (db) => keys.lockWorkspaceKeys(db, ws),
  updateLastUsed: (db) => keys.updateLastUsed(db, [['k1', NOW]]),
})

calls.set(links, {
  insertLink: async (db) => links.insertLink(db, { ...(await link(db)), id: 'l', hash: 'h' }),
  clearEmailProof: (db) => links.clearEmailProof(db, 'l1'),
  findLink: (db) => links.findLink(db, 'h1', 0),
  endLink: (db) => links.endLink(db, 'h1', 0),
  listInvitations: (db) => links.listInvitations(db, ws, 0),
  hasOpenInvitation: (db) => links.hasOpenInvitation(db, 4_990),
  listOpenInvitationsTo: (db) => links.listOpenInvitationsTo(db, '1@x', 0),
  revokeInvitation: (db) => links.revokeInvitation(db, ws, 'l1', 0),
  endLinks: async (db) => {
    await links.endLinks(db, { workspace_id: ws, creator_id: 'u1' }, 0)
    await links.endLinks(db, { workspace_id: ws, email: null }, 0)
    await links.endLinks(db, { purpose: 'join', email: '1@x', workspace_id: ws }, 0)
    await links.endLinks(db, { purpose: 'reset', email: '1@x', workspace_id: null }, 0)
  },
  recentLinkTimes: async (db) => {
    const limits = { since: 100, max: 10 }
    for (const matching of [{ workspace_id: ws }, { creator_id: 'u1' }, { workspace_id: ws, email: '1@x' }])
      await links.recentLinkTimes(db, { purpose: 'join', matching, ...limits })
    await links.recentLinkTimes(db, { purpose: 'reset', matching: { email: '1@x' }, ...limits })
  },
  lockRecentLinksTo: (db) => links.lockRecentLinksTo(db, '1@x', 0),
})

calls.set(edgeSessions, {
  renewLockedSession: (db) => edgeSessions.renewLockedSession(db, 'e1', sessionReport, 1_000),
  lockSession: (db) => edgeSessions.lockSession(db, 'e1'),
  lockSessionShared: (db) => edgeSessions.lockSessionShared(db, 'e1', 's'),
  replaceSession: (db) => edgeSessions.replaceSession(db, 'e1', 's', 1_000),
  updateSession: (db) => edgeSessions.updateSession(db, 'e1', sessionReport, 1_000),
  lockSessionsByName: (db) => edgeSessions.lockSessionsByName(db, ws, 'n12'),
  endSession: (db) => edgeSessions.endSession(db, 'e1'),
  lockExpiredSessions: (db) => edgeSessions.lockExpiredSessions(db, ['e1', 'e2']),
})

calls.set(tunnels, {
  insertTunnels: (db) => tunnels.insertTunnels(db, [openTunnel]),
  writeTunnels: (db) => tunnels.writeTunnels(db, [openTunnel]),
  findTunnels: (db) => tunnels.findTunnels(db, 'e1', ['t1', 't2']),
  endTunnels: (db) => tunnels.endTunnels(db, 'e1', { ids: ['t1', 't2'], previous: 4 }),
  deleteRows: (db) => tunnels.deleteRows(db, [{ edge_id: 'e1', id: 't3' }]),
  findConnections: (db) => tunnels.findConnections(db, [openTunnel]),
  endOtherTunnels: (db) =>
    tunnels.endOtherTunnels(db, 'e1', { ids: new Set(['t1']), sequence: 5, previous: 4 }),
  endUnreported: (db) => tunnels.endUnreported(db, 'e1', 5),
  countTunnels: (db) => tunnels.countTunnels(db, 'e1', [ws]),
})

calls.set(instructions, {
  lockInstructed: (db) => instructions.lockInstructed(db, 'e11', 10),
  setInstructed: (db) => instructions.setInstructed(db, 'e1', ['t1'], 1),
  instructByName: (db) => instructions.instructByName(db, ws, 'n12'),
  findTunnel: (db) => instructions.findTunnel(db, ws, 't12'),
  requestClose: (db) =>
    instructions.requestClose(db, { workspaceId: ws, tunnelId: 't12', name: 'n12' }, { at: NOW, by: 'x' }),
  markMoved: (db) => instructions.markMoved(db, [openTunnel], NOW),
})

calls.set(tunnelLists, {
  openTunnels: (db) =>
    tunnelLists.openTunnels(db).selectAll('tunnel').where('tunnel.workspace_id', '=', ws).execute(),
  listTunnels: async (db) => {
    await tunnelLists.listTunnels(db, ws, { limit: 10 })
    await tunnelLists.listTunnels(db, ws, { name: 'n12', after: openTunnel, limit: 10 })
  },
  listConnections: (db) => tunnelLists.listConnections(db, { workspaceId: ws, tunnelId: 't12', limit: 10 }),
  mayBeCarried: (db) =>
    tunnelLists.mayBeCarried(db, { workspaceId: ws, tunnelId: 't12', name: 'n12' }, 5_000),
  listAllTunnels: (db) => tunnelLists.listAllTunnels(db, { after: openTunnel, limit: 10 }),
  countByEdge: (db) => tunnelLists.countByEdge(db, ws),
  listOpenNames: (db) => tunnelLists.listOpenNames(db, ws),
})

calls.set(abandoned, {
  deleteAbandoned: (db) => abandoned.deleteAbandoned(db, 1_000, 10),
  moveAbandonedCounts: (db) => abandoned.moveAbandonedCounts(db, 10),
  countAbandoned: (db) => abandoned.countAbandoned(db, 1_000),
})

calls.set(locationLog, {
  lockHeads: (db) => locationLog.lockHeads(db, ['e1', 'e2']),
  readHeads: (db) => locationLog.readHeads(db),
  readLocations: (db) => locationLog.readLocations(db, [openTunnel]),
  appendLocations: (db) =>
    locationLog.appendLocations(
      db,
      { group: 'default', sequence: 1, checksum: 'c' },
      [{ checksum: 'c', opened: [], closed: [] }],
      NOW,
    ),
  readEntries: (db) => locationLog.readEntries(db, 'g1', { sequence: 10, checksum: 'c' }, 10),
  listLocatedEdges: (db) => locationLog.listLocatedEdges(db, 'default'),
  listLocations: (db) => locationLog.listLocations(db, 'e1', { after: 't1', limit: 10 }),
})

calls.set(peers, { listPeers: (db) => peers.listPeers(db) })

calls.set(holders, {
  recordRecentKeys: (db) => holders.recordRecentKeys(db, 'e1', [{ key_id: 'k1' }]),
  findHolders: (db) => holders.findHolders(db, 'k1'),
})

calls.set(edgeWorkspaces, {
  findEdgeWorkspaces: (db) => edgeWorkspaces.findEdgeWorkspaces(db, [pair]),
  insertEdgeWorkspaces: (db) => edgeWorkspaces.insertEdgeWorkspaces(db, [pair]),
  findGroupWorkspaces: (db) => edgeWorkspaces.findGroupWorkspaces(db, 'default', ['w1', 'w2']),
  listEdgeWorkspaces: async (db) => {
    await edgeWorkspaces.listEdgeWorkspaces(db, 'e1', { limit: 10 })
    await edgeWorkspaces.listEdgeWorkspaces(db, 'e1', { after: 'w1', limit: 10 })
  },
  countTunnelEvents: (db) => edgeWorkspaces.countTunnelEvents(db, [{ ...pair, added: 1 }]),
})

calls.set(tunnelAdmission, {
  findOtherTunnels: (db) => tunnelAdmission.findOtherTunnels(db, 'e1', [name]),
  resolveKeys: (db) => tunnelAdmission.resolveKeys(db, ['k1']),
})

calls.set(tunnelCounts, {
  countNames: (db) => tunnelCounts.countNames(db, 'e1', [{ ...name, from: NOW }]),
  moveCounts: (db) => tunnelCounts.moveCounts(db, [{ ...name, edge_id: 'e2' }]),
  moveCountsOfEdges: (db) => tunnelCounts.moveCountsOfEdges(db, ['e1', 'e2'], 10),
})

calls.set(tunnelNames, {
  upsertNames: (db) => tunnelNames.upsertNames(db, [name], { now: NOW, expiresAt: NOW }),
  lockName: (db) => tunnelNames.lockName(db, name),
  lockNamesOfTunnels: (db) => tunnelNames.lockNamesOfTunnels(db, [{ edge_id: 'e1', id: 't3' }]),
  trimNames: (db) => tunnelNames.trimNames(db, 'w9', 5),
  readRules: (db) => tunnelNames.readRules(db, [name]),
  listNames: async (db) => {
    await tunnelNames.listNames(db, ws, { limit: 10 })
    await tunnelNames.listNames(db, ws, { after: 'n12', limit: 10 })
  },
  findName: (db) => tunnelNames.findName(db, name),
  countReserved: (db) => tunnelNames.countReserved(db, ws),
  reserveName: (db) => tunnelNames.reserveName(db, { ...name, now: NOW, accessRules: null }),
  releaseName: (db) => tunnelNames.releaseName(db, name, NOW),
  renewNamesInUse: (db) => tunnelNames.renewNamesInUse(db, { before: 20, expiresAt: NOW, size: 10 }),
})

calls.set(sessions, {
  insertSession: (db) => sessions.insertSession(db, session),
  findSession: (db) => sessions.findSession(db, 't1'),
  extendSession: (db) => sessions.extendSession(db, { id: 's1', expiresAt: NOW }),
  listSessions: (db) => sessions.listSessions(db, 'u1', 0),
  lockSession: (db) => sessions.lockSession(db, 'u1', 's1'),
  deleteSession: (db) => sessions.deleteSession(db, 'u1', 's1'),
  deleteSessions: (db) => sessions.deleteSessions(db, 'u1', 's1'),
  dropSessionsBeyond: (db) => sessions.dropSessionsBeyond(db, 'u2', 1),
})

calls.set(challenges, {
  insertChallenge: (db) => challenges.insertChallenge(db, { hash: 'h', userId: 'u1', expiresAt: NOW }),
  findChallenge: (db) => challenges.findChallenge(db, 'h', 0),
  countFailedCode: (db) => challenges.countFailedCode(db, 'h'),
  deleteChallenge: (db) => challenges.deleteChallenge(db, 'h'),
  deleteChallenges: (db) => challenges.deleteChallenges(db, 'u1'),
  consumeSsoState: (db) => challenges.consumeSsoState(db, { hash: 'h', expiresAt: NOW }),
})

calls.set(twoFactors, {
  findTwoFactor: (db) => twoFactors.findTwoFactor(db, 'u1'),
  setTwoFactor: (db) => twoFactors.setTwoFactor(db, { ...twoFactor, user_id: 'u1' }),
  updateTwoFactor: (db) => twoFactors.updateTwoFactor(db, 'u1', { failed_codes: 1 }),
  enableTwoFactor: (db) => twoFactors.enableTwoFactor(db, 'u1'),
  deleteTwoFactor: (db) => twoFactors.deleteTwoFactor(db, 'u1'),
  lacksTwoFactor: (db) => twoFactors.lacksTwoFactor(db, 'u1'),
  revokeKeysWithoutTwoFactor: async (db) => {
    await twoFactors.revokeKeysWithoutTwoFactor(db, { userId: 'u1' }, NOW)
    await twoFactors.revokeKeysWithoutTwoFactor(db, { workspaceId: ws }, NOW)
  },
  useCode: (db) => twoFactors.useCode(db, { userId: 'u1', hash: 'h', at: NOW, deleteBefore: 10 }),
})

calls.set(notices, {
  listExpiringKeys: (db) =>
    notices.listExpiringKeys(db, { after: { expiresAt: 4_000, id: '' }, until: 4_500, limit: 10 }),
  listExpiredKeys: (db) =>
    notices.listExpiredKeys(db, { kind: 'key-expired', after: 4_000, until: 4_500, limit: 10 }),
  insertNotices: (db) => notices.insertNotices(db, [notice]),
  listNoticed: (db) => notices.listNoticed(db, [notice, { ...notice, subject_id: 'k2' }]),
  insertMails: (db) => notices.insertMails(db, { ...noticeMail, digest_id: 'd' }, [noticeMail.user_id]),
  countDigests: async (db) => {
    for (const areRequests of [true, false]) await notices.countDigests(db, ws, { since: 100, areRequests })
  },
  listNoticedKeys: (db) => notices.listNoticedKeys(db, ws, 10),
  findDetail: (db) => notices.findDetail(db, 'd7'),
  listSilent: (db) => notices.listSilent(db, ws, 10),
  listRejected: (db) => notices.listRejected(db, ws, 100, 10),
  listDigestKeys: (db) => notices.listDigestKeys(db, 'd7', 10),
  findRecipient: (db) => notices.findRecipient(db, noticeMail, ['owner', 'admin']),
})

calls.set(mailQueue, {
  listDueMails: (db) => mailQueue.listDueMails(db, 'notice_mails', 10),
  claimMail: (db) => mailQueue.claimMail(db, 'notice_mails', noticeMail, 1_000),
  endMail: (db) => mailQueue.endMail(db, 'notice_mails', noticeMail),
})

calls.set(webhookEvents, {
  listReceivers: (db) => webhookEvents.listReceivers(db, ['w1', 'w2']),
  insertDeliveries: (db) => webhookEvents.insertDeliveries(db, [delivery]),
})

calls.set(webhookQueue, {
  findNextDelivery: (db) => webhookQueue.findNextDelivery(db, 'whk_7', 71),
  hasDeliveries: (db) =>
    webhookQueue.hasDeliveries(db, 'whk_7', { from: 71, types: ['tunnel.opened'], count: 10 }),
  recordDelivered: (db) =>
    webhookQueue.recordDelivered(db, claimed, { position: 71, attempt, claimMs: 1_000 }),
  recordFailed: (db) => webhookQueue.recordFailed(db, claimed, { position: 72, attempt, retryInMs: 1_000 }),
  releaseClaim: (db) => webhookQueue.releaseClaim(db, claimed, 73),
  disableIf: (db) =>
    webhookQueue.disableIf(db, 'whk_8', { failing_since: 1 }, { at: NOW, reason: 'failing' }),
  trimDeliveries: (db) => webhookQueue.trimDeliveries(db, 'whk_6', 65),
})

calls.set(webhookPositions, {
  listUnassigned: (db) => webhookPositions.listUnassigned(db, 'whk_490', 10),
  lockEndpoints: (db) => webhookPositions.lockEndpoints(db, ['whk_491', 'whk_492']),
  assignPositions: (db) =>
    webhookPositions.assignPositions(db, [{ id: 'whk_491', last_position: 4_919 }], 10),
  deleteOrphans: (db) => webhookPositions.deleteOrphans(db, ['whk_491', 'whk_493']),
})

calls.set(webhookEndpoints, {
  listEndpoints: (db) => webhookEndpoints.listEndpoints(db, ws),
  listDisabledByServer: (db) => webhookEndpoints.listDisabledByServer(db, ws),
  findEndpoint: (db) => webhookEndpoints.findEndpoint(db, { workspaceId: ws, id: 'whk_1' }),
  lockEndpoint: (db) => webhookEndpoints.lockEndpoint(db, { workspaceId: ws, id: 'whk_1' }),
  insertEndpoint: (db) => webhookEndpoints.insertEndpoint(db, endpoint),
  updateEndpoint: (db) => webhookEndpoints.updateEndpoint(db, 'whk_1', { url: 'https://x.example' }),
  deletePreviousSecrets: (db) => webhookEndpoints.deletePreviousSecrets(db, 100, 10),
  restartQueue: (db) => webhookEndpoints.restartQueue(db, 'whk_1'),
  deleteEndpoint: (db) => webhookEndpoints.deleteEndpoint(db, 'whk_2'),
  listDeliveries: (db) => webhookEndpoints.listDeliveries(db, 'whk_7', { before: 75, limit: 10 }),
  findDelivery: (db) => webhookEndpoints.findDelivery(db, 'whk_7', 71),
})

calls.set(retention, {
  deleteExpired: async (db) => {
    for (const table of [
      'sessions',
      'verifications',
      'links',
      'used_codes',
      'device_authorizations',
      'notices',
      'notice_mails',
      'webhook_deliveries',
      'idempotent_responses',
      'tunnel_names',
    ] as const)
      for (const before of [40, NOW]) await retention.deleteExpired(db, table, before, 20)
    for (const before of [3_600_000 * 40, NOW]) await retention.deleteExpired(db, 'usage_hours', before, 20)
    for (const before of ['aud_10040', 'b']) await retention.deleteExpired(db, 'audit_log', before, 20)
  },
  // Counts what will be deleted, so it may read all of it.
  countExpired: (db) => retention.countExpired(db, 'sessions', 100),
  deleteUsage: (db) => retention.deleteUsage(db, { table: 'usage_counters', ...usageBatch }, 20),
  countUsage: (db) => retention.countUsage(db, { table: 'usage_counters', ...usageBatch }),
  listOldHours: (db) => retention.listOldHours(db, 100, 10),
  listWorkspaceIds: (db) => retention.listWorkspaceIds(db, 'w1', 10),
})

calls.set(usageReset, {
  listCounters: (db) => usageReset.listCounters(db, { workspaceId: ws, day: DAY }, 10),
  listReportedDays: (db) =>
    usageReset.listReportedDays(db, { workspaceId: ws, edgeId: 'e1', from: DAY, until: 2 * DAY }),
  resetDay: async (db) => {
    await usageReset.resetDay({ db, isDistributed: false }, { workspaceId: ws, day: DAY }, 'e1')
    await usageReset.resetDay({ db, isDistributed: false }, { workspaceId: ws, day: DAY }, undefined)
  },
})

const report = {
  edgeId: 'e1',
  epoch: 'p2',
  counters: ['w1', 'w2', 'w3'].map((workspaceId) => ({
    workspaceId,
    day: 2 * DAY,
    requests: 1n,
    bytesIn: 1n,
    bytesOut: 1n,
    events: 1n,
    lastSeen: 2 * DAY,
  })),
  tunnels: ['w1', 'w2', 'w3'].map((workspaceId) => ({ workspaceId, minute: 2 * DAY, open: 2 })),
}

const session = {
  id: 'new',
  user_id: 'u1',
  token: 'new',
  ip_address: null,
  user_agent: null,
  created_at: NOW,
  expires_at: NOW,
  id_token: null,
}

const twoFactor = { secret: 's', recovery_codes: '[]', failed_codes: 0, locked_until: null }

/** What has transactions of its own. */
async function useStore(store: Store): Promise<void> {
  const limits = { limit: 10, failingLimit: 10, exceptWorkspaces: ['w1'] }
  await webhookQueue.claimDue(store, { claim: 'x', claimMs: 1_000, ...limits })
  await mergeReport(store, report)
  await usage.readUsage(store.db, ws, 0, NOW)
}

const names = (module: object) =>
  Object.entries(module)
    .filter(([, value]) => typeof value === 'function')
    .map(([name]) => name)

/**
 * Exported functions without a query; `renewSession` has the one of `renewLockedSession`, and `useStore`
 * calls `claimDue`.
 */
const PURE = [
  'claimDue',
  'follows',
  'formatPosition',
  'isSamePosition',
  'parsePosition',
  'nameKey',
  'renewSession',
  'selectDeliveries',
  'toHostEdge',
]

test('every function of these modules is called by the test below', () => {
  for (const [module, called] of calls)
    assert.deepEqual(
      Object.keys(called).toSorted(),
      names(module)
        .filter((name) => !PURE.includes(name))
        .toSorted(),
    )
})

for (const engine of engines) {
  test(`${engine}: no query scans a table that grows with traffic, users or time`, async (t) => {
    const recorded = recordQueries(t)
    const { services, database } = await openTestServices(t, engine)
    const { store } = services
    await fill(store)
    recorded.length = 0
    await useStore(store)
    for (const functions of calls.values())
      for (const call of Object.values(functions)) await store.transaction(async (db) => call(db, store))
    const queries = [...new Map(recorded.map((each) => [each.text, each])).values()].filter(
      (each) => isQuery(each) && !isBounded(each),
    )
    assert.ok(queries.length > 60, `recorded only ${queries.length} queries`)
    const scans =
      engine === 'postgres'
        ? await scansOnPostgres(database, queries)
        : scansOnSqlite(database.slice('sqlite:'.length), queries)
    assert.deepEqual(scans, [])
  })

  test(`${engine}: active keys are found by indexes that do not have revoked keys`, async (t) => {
    const recorded = recordQueries(t)
    const { services, database } = await openTestServices(t, engine)
    const { store } = services
    await store.transaction(async (db) => {
      const workspace = { id: 'w', slug: 'w', name: 'n', created_at: 1 }
      await db.insertInto('workspaces').values(workspace).execute()
      await sql
        .raw(
          `with recursive n (i) as (select 1 union all select i + 1 from n where i < ${ROWS})
           insert into api_keys (id, workspace_id, label, hash, created_at, revoked_at, lineage_id, generation,
             created_by_kind, created_by, last_four)
           select 'k' || i, 'w', 'l', 'h' || i, i, case when i > 5 then i end, 'k1', i, 'user', 'u', 'xxxx' from n`,
        )
        .execute(db)
      await sql.raw('analyze').execute(db)
    })
    const indexOf = async (read: Promise<unknown>) => {
      recorded.length = 0
      await read
      const [query] = recorded
      assert.ok(query)
      const plan =
        engine === 'postgres'
          ? await planOnPostgres(database, query)
          : planOnSqlite(database.slice('sqlite:'.length), query)
      return /api_keys_\w+/.exec(JSON.stringify(plan))?.[0]
    }
    const unrevoked = { ...page, withRevoked: false }
    assert.equal(await indexOf(keys.listActiveByLineage(store.db, 'w', ['k1'])), 'api_keys_lineages')
    assert.equal(await indexOf(keys.listKeys(store.db, 'w', unrevoked)), 'api_keys_active')
    assert.equal(
      await indexOf(keys.listKeys(store.db, 'w', { ...unrevoked, after: 'k4' })),
      'api_keys_active',
    )
  })
}
