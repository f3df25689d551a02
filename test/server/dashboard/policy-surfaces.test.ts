// Each policy of a workspace on each operation and command that creates keys. The cases are generated from
// the tables of operations, commands and policies.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Policy as PolicySchema } from '../../../src/contract/dashboard/settings.ts'
import { DAY_MS } from '../../../src/lib/time.ts'
import type { Policy } from '../../../src/server/domain/workspaces/policy.ts'
import type { PolicyColumns } from '../../../src/server/store/workspaces.ts'
import { engines } from '../../support/databases/create.ts'
import {
  allWays,
  type Deployment,
  maybeCreatingKeys,
  type NewKey,
  setUpKeyCreation,
  type Way,
  ways,
} from '../../support/databases/key-creation.ts'
import { readRows, setRows } from '../../support/databases/rows.ts'
import { pluck } from '../../support/pluck.ts'

/**
 * Commands that create no key; a new one goes here or into `ways`. `serve` creates one for the first
 * workspace, which has no policy yet.
 */
const createNoKey =
  'logout, profiles, profiles use, workspace, keys list, keys revoke, usage, ' +
  'tunnels list, tunnels show, tunnels close, names list, edges list, tunnel, tunnel tcp, start, edge, ' +
  'requests list, requests link, requests show, requests replay, requests export, requests verify, ' +
  'tokens-file add, tokens-file list, tokens-file remove, serve, completion, admin workspace create, ' +
  'admin workspace list, admin workspace provision, admin workspace archive, admin workspace restore, ' +
  'admin workspace set-group, admin workspace quota, admin doctor, admin key list, admin key find, admin key revoke, admin edge create, admin edge list, ' +
  'admin edge set-url, admin edge-group create, admin edge-group list, ' +
  'admin edge revoke, admin port list, admin port release, admin tunnels, admin user invite, admin user list, admin user reset, ' +
  'admin user revoke, admin user restore, admin usage show, admin usage reset, admin audit export, ' +
  'admin migrate, admin backup, admin backup verify, admin revoke-again, admin retention, admin distribute, admin nodes, admin demo'

/** In variant B only: accounts/key-requests.test.ts tries the policies. */
const PICK_UP = 'dashboard key-requests.pick-up'

test('every operation and command is known to create keys or not to', () => {
  const creatingNone = createNoKey.split(', ').map((name) => `command ${name}`)
  const known = new Set([...creatingNone, ...Object.keys(ways), PICK_UP])
  assert.deepEqual([...maybeCreatingKeys.difference(known)], [], 'add a way to create keys, or `createNoKey`')
  assert.deepEqual([...known.difference(allWays)], [], 'no longer exist')
})

const DAYS_MAX = 30

interface Restriction {
  columns: Partial<PolicyColumns & { archived_at: number | null }>
  /** Whose keys are not created, and why; the longest life is tested apart. */
  rejects?: Partial<Record<Way['actor'], RegExp>>
}

const policies: Record<keyof Policy, Restriction> = {
  keyDaysMax: { columns: { key_days_max: DAYS_MAX } },
  keysManageKeys: {
    columns: { keys_read_only_at: 1 },
    rejects: { key: /policy of this workspace does not let API keys create API keys/ },
  },
  keyCreators: {
    columns: { key_creator_role: 'owner' },
    rejects: { user: /policy of this workspace lets only owners create API keys/ },
  },
  twoFactorRequired: {
    columns: { two_factor_required_at: 1 },
    rejects: { user: /requires two-factor authentication/ },
  },
}

const archived: Restriction = {
  columns: { archived_at: 1 },
  rejects: {
    key: /archived/,
    user: /This workspace is archived/,
    operator: /The workspace "acme" is archived/,
  },
}

const open = {
  key_days_max: null,
  keys_read_only_at: null,
  key_creator_role: null,
  two_factor_required_at: null,
  archived_at: null,
}

test('every policy is tested', () => {
  assert.deepEqual(Object.keys(policies), Object.keys(PolicySchema.properties))
})

for (const engine of engines)
  test(`${engine}: policies hold for every operation and command that creates keys`, async (t) => {
    const deployment = await setUpKeyCreation(t, engine)
    for (const [name, way] of Object.entries(ways))
      if ('actor' in way)
        await t.test(name, async () => {
          for (const restriction of [...Object.values(policies), archived])
            await checkRejection(deployment, way, restriction)
          await checkLife(deployment, way)
        })
  })

/** Keys of those whom the policy restricts are not created; those of others are. */
async function checkRejection(deployment: Deployment, way: Way, { columns, rejects }: Restriction) {
  const { isAccepted, text, created } = await attempt(deployment, way, columns, {})
  const reason = rejects?.[way.actor]
  const what = `${JSON.stringify(columns)}: ${text}`
  assert.equal(isAccepted, reason === undefined, what)
  assert.equal(created.length, reason ? 0 : 1, what)
  if (reason) assert.match(text, reason)
}

async function checkLife(deployment: Deployment, way: Way) {
  const { columns } = policies.keyDaysMax
  // Without an expiry, as long as a longer one is asked for, and with a shorter one.
  for (const days of way.life === 'none' ? [undefined] : [undefined, 2 * DAYS_MAX, 2]) {
    const { isAccepted, text, created } = await attempt(deployment, way, columns, { days })
    const isRejected = way.life === 'asked' && days === 2 * DAYS_MAX
    assert.equal(isAccepted, !isRejected, `${days} days: ${text}`)
    if (isRejected) assert.match(text, /30 days/)
    assert.deepEqual(created.map(lifetimeDays), isRejected ? [] : [Math.min(days ?? DAYS_MAX, DAYS_MAX)])
    assert.deepEqual(await forcedEntries(deployment, created), [])
  }
  if (way.actor !== 'operator') return
  for (const days of [undefined, 2 * DAYS_MAX]) {
    const { text, created } = await attempt(deployment, way, columns, { days, force: true })
    assert.deepEqual(created.map(lifetimeDays), [days ?? null], text)
    assert.deepEqual(
      await forcedEntries(deployment, created),
      created.map(({ id }) => id),
    )
  }
}

let attempts = 0

/** With the keys that were created. */
async function attempt(
  deployment: Deployment,
  way: Way,
  columns: Restriction['columns'],
  key: Omit<NewKey, 'label'>,
) {
  const label = `attempt ${++attempts}`
  const act = await way.prepare(deployment, { ...key, label })
  const before = await keysWith(deployment, label)
  await setColumns(deployment, columns)
  const { isAccepted, text } = await act()
  await setColumns(deployment, open)
  const after = await keysWith(deployment, label)
  for (const { id, expires_at } of before) {
    const now = after.find((key) => key.id === id)?.expires_at
    assert.ok(expires_at === null || (now && now <= expires_at), 'no existing key lives longer')
  }
  const created = after.filter(({ id }) => !before.some((key) => key.id === id))
  return { isAccepted, text, created }
}

type StoredKey = Awaited<ReturnType<typeof keysWith>>[number]

const keysWith = ({ server }: Deployment, label: string) => readRows(server.services, 'api_keys', { label })

const setColumns = ({ server: { services, workspace } }: Deployment, columns: object) =>
  setRows(services, 'workspaces', columns, { id: workspace.id })

const lifetimeDays = ({ created_at, expires_at }: StoredKey) =>
  expires_at === null ? null : Math.round((expires_at - created_at) / DAY_MS)

/** The keys of which the audit log says that the policy was overridden. */
async function forcedEntries({ server: { services } }: Deployment, keys: StoredKey[]) {
  const entries = await readRows(services, 'audit_log', { action: 'key.created', detail: 'forced' })
  const forced = new Set(pluck(entries, 'target_id'))
  return keys.map(({ id }) => id).filter((id) => forced.has(id))
}
