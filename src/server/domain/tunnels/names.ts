// The tunnel names of a workspace: reserve, release, and set access rules.

import type { AuditAction } from '../../../contract/audit-actions.ts'
import type { AccessRules } from '../../../contract/edge/access-rules.ts'
import { PAGE_ITEMS } from '../../../contract/limits.ts'
import {
  BASIC_AUTH_PASSWORD_RULE,
  BASIC_AUTH_USER_RULE,
  isBasicAuthPassword,
  isBasicAuthUser,
} from '../../../lib/credentials/basic-auth.ts'
import { hashPassword } from '../../../lib/credentials/password-hash.ts'
import { HOST_HEADER_RULE, isHost } from '../../../lib/net/host-header.ts'
import { parseNetwork } from '../../../lib/net/ip-network.ts'
import type { Tx } from '../../store/engine/store.ts'
import { lockSessionsByName } from '../../store/tunnels/edge-sessions.ts'
import { instructByName } from '../../store/tunnels/instructions.ts'
import { listOpenNames } from '../../store/tunnels/lists.ts'
import {
  countReserved,
  findName,
  listNames as listRows,
  type NameRow,
  releaseName,
  reserveName,
  trimNames,
} from '../../store/tunnels/names.ts'
import { getWorkspace } from '../../store/workspaces.ts'
import { announce, publishChange } from '../../verification/propagation.ts'
import { reauthorize } from '../actors.ts'
import { type Changes, changesBetween } from '../audit/changes.ts'
import { writeAudit } from '../audit/entries.ts'
import type { Context } from '../context.ts'
import { Fault, invalid } from '../fault.ts'
import { type PageRequest, toPageBy } from '../pagination.ts'
import { isoOrNull } from '../timestamps.ts'
import { describeWorkspace } from '../workspaces/manage.ts'
import { NAMES_MAX, nameExpiry, parseRules } from './admission.ts'

const RESERVED_MAX = 100

export async function listNames(ctx: Context, { limit = PAGE_ITEMS.default, cursor }: PageRequest) {
  const rows = await listRows(ctx.store.db, ctx.workspaceId, { after: cursor, limit: limit + 1 })
  const { page, next } = toPageBy(rows, limit, ({ name }) => name)
  return { names: await describeNames(ctx, page), reservedMax: RESERVED_MAX, next }
}

async function describeNames(ctx: Context, rows: readonly NameRow[]) {
  const { db } = ctx.store
  const { tunnelBase } = describeWorkspace(ctx, await getWorkspace(db, ctx.workspaceId))
  const openNames = await listOpenNames(db, ctx.workspaceId)
  return rows.map((row) => {
    const rules = parseRules(row.access_rules)
    const open = openNames.get(row.name)
    return {
      name: row.name,
      host: `${row.name}.${tunnelBase}`,
      lastUsedAt: isoOrNull(row.last_used_at),
      reserved: row.expires_at === null,
      open: open?.count ?? 0,
      url: open?.url ?? null,
      access: {
        user: rules?.basicAuth?.user ?? null,
        allowIp: rules?.allowIp ?? [],
        hostHeader: rules?.hostHeader ?? null,
      },
    }
  })
}

type NameView = Awaited<ReturnType<typeof describeNames>>[number]

async function describeName(ctx: Context, row: NameRow): Promise<NameView> {
  const [view] = await describeNames(ctx, [row])
  return view as NameView
}

export async function reserve(ctx: Context, name: string): Promise<NameView> {
  const row = await ctx.store.transaction(async (db) => {
    await reauthorize(db, ctx)
    const stored = await findName(db, nameId(ctx, name))
    if (stored?.expires_at === null) return stored
    await makeRoom(db, ctx, stored)
    await audit(db, ctx, 'name.reserved', name)
    return reserveName(db, { ...nameId(ctx, name), now: ctx.clock() })
  })
  return describeName(ctx, row)
}

/** The name stays in the list for a day, or while it is open. */
export async function release(ctx: Context, name: string) {
  await ctx.store.transaction(async (db) => {
    await reauthorize(db, ctx)
    const stored = await findName(db, nameId(ctx, name))
    if (stored?.expires_at !== null) throw new Fault('not_found')
    if (stored.access_rules !== null)
      throw new Fault('conflict', {
        message: `The name "${name}" has access rules. Remove them before you release it.`,
      })
    await releaseName(db, nameId(ctx, name), nameExpiry(ctx.clock()))
    await audit(db, ctx, 'name.released', name)
  })
  return { name, released: true as const }
}

interface NewAccess {
  basicAuth?: { user: string; password?: string }
  allowIp?: string[]
  hostHeader?: string
}

/** Runs the hashing of a password when its turn has come. */
type Enqueue = (hash: () => Promise<string>) => Promise<string>

export async function setAccess(
  ctx: Context,
  name: string,
  { basicAuth, allowIp = [], hostHeader }: NewAccess,
  enqueue: Enqueue,
): Promise<NameView> {
  const networks = allowIp.map(canonicalNetwork)
  if (hostHeader !== undefined && !isHost(hostHeader))
    throw invalid('/body/hostHeader', `must be ${HOST_HEADER_RULE}`)
  const password = basicAuth && checkBasicAuth(basicAuth)
  // Before the transaction, because it takes long.
  const hash = password && (await enqueue(() => hashPassword(password, ctx.random)))
  const { row, changes } = await ctx.store.transaction(async (db) => {
    await reauthorize(db, ctx)
    const stored = await findName(db, nameId(ctx, name))
    const before = parseRules(stored?.access_rules ?? null)
    const credential = toCredential(basicAuth?.user, hash ?? before?.basicAuth?.hash)
    const rules = createRules(credential, networks, hostHeader)
    if (!rules && !stored) throw new Fault('not_found')
    // Nothing to remove: without rules, the name need not be reserved.
    if (!rules && stored && !before) return { row: stored, changes: [] }
    await makeRoom(db, ctx, stored)
    await lockSessionsByName(db, ctx.workspaceId, name)
    const row = await reserveName(db, {
      ...nameId(ctx, name),
      now: ctx.clock(),
      accessRules: rules && JSON.stringify(rules),
    })
    await audit(db, ctx, 'name.rules-changed', name, rulesChanged(before, rules, password !== undefined))
    const changes = []
    for (const edgeId of await instructByName(db, ctx.workspaceId, name))
      changes.push(await publishChange(db, ctx, { kind: 'tunnels', subjectId: edgeId }))
    return { row, changes }
  })
  for (const change of changes) announce(ctx, change)
  return describeName(ctx, row)
}

/** Returns the password, if there is one. The contract counts characters before they are composed. */
function checkBasicAuth({ user, password }: NonNullable<NewAccess['basicAuth']>): string | undefined {
  if (!isBasicAuthUser(user)) throw invalid('/body/basicAuth/user', `must be ${BASIC_AUTH_USER_RULE}`)
  if (password !== undefined && !isBasicAuthPassword(password))
    throw invalid('/body/basicAuth/password', `must be ${BASIC_AUTH_PASSWORD_RULE}`)
  return password
}

function canonicalNetwork(text: string, index: number): string {
  const network = parseNetwork(text)
  if (network === undefined)
    throw invalid(`/body/allowIp/${index}`, 'must be an IP address or a network such as 192.0.2.0/24')
  return network
}

function toCredential(user: string | undefined, hash: string | undefined): AccessRules['basicAuth'] {
  if (user === undefined) return null
  if (hash === undefined)
    throw invalid('/body/basicAuth/password', 'is required, because the name has no password yet')
  return { user, hash }
}

function createRules(
  basicAuth: AccessRules['basicAuth'],
  allowIp: string[],
  hostHeader: string | undefined,
): AccessRules | null {
  if (!basicAuth && allowIp.length === 0 && hostHeader === undefined) return null
  return { basicAuth, allowIp, ...(hostHeader !== undefined && { hostHeader }) }
}

const nameId = ({ workspaceId }: Context, name: string) => ({ workspace_id: workspaceId, name })

/**
 * Checks the limits for a name that is going to be reserved; undefined if the workspace does not have it yet.
 */
async function makeRoom(db: Tx, ctx: Context, stored: NameRow | undefined): Promise<void> {
  if (stored?.expires_at === null) return
  if ((await countReserved(db, ctx.workspaceId)) >= RESERVED_MAX)
    throw new Fault('conflict', {
      message: `The workspace has ${RESERVED_MAX} reserved names, which is the limit. Release one first.`,
    })
  if (!stored) await trimNames(db, ctx.workspaceId, NAMES_MAX - 1)
}

const audit = (db: Tx, ctx: Context, action: AuditAction, name: string, changes?: Changes) =>
  writeAudit(db, ctx, {
    workspaceId: ctx.workspaceId,
    actor: ctx.actor,
    action,
    target: { id: name, name },
    ...(changes && { changes }),
  })

const HIDDEN = '(hidden)'

/** Says that the password was changed, and nothing else about it. */
const rulesChanged = (
  before: AccessRules | null,
  after: AccessRules | null,
  newPassword: boolean,
): Changes => ({
  ...changesBetween(before && auditedRules(before), auditedRules(after ?? { basicAuth: null, allowIp: [] })),
  ...(newPassword && { password: [before?.basicAuth ? HIDDEN : null, HIDDEN] }),
})

const auditedRules = ({ basicAuth, allowIp, hostHeader }: AccessRules) => ({
  user: basicAuth?.user ?? null,
  allowIp,
  hostHeader: hostHeader ?? null,
})
