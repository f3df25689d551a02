// The audit log. Entries are written in the transaction of the action: if one cannot be written, the action
// fails.

import {
  type AuditAction,
  isRepeatable,
  targetKind,
  visibleActions,
} from '../../../contract/audit-actions.ts'
import { MINUTE_MS } from '../../../lib/time.ts'
import { listMemberWorkspaceIds, type Role } from '../../store/accounts/members.ts'
import { lockUser } from '../../store/accounts/users.ts'
import {
  type AuditRow,
  countRepetition,
  findRepeated,
  insertAudit,
  listAudit,
  updateRepeated,
} from '../../store/audit/entries.ts'
import type { Tx } from '../../store/engine/store.ts'
import type { Actor, Context, Services } from '../context.ts'
import { firstIdSince } from '../ids.ts'
import { filteredPage } from '../pagination.ts'
import { parseTimestamp, toIso } from '../timestamps.ts'
import { type Changes, mergeChanges, parseChanges, serializeChanges, withoutAddresses } from './changes.ts'

/** Sign-in method, reason of a failure, or other detail. Never contains user input. */
export type AuditDetail =
  | 'password'
  | 'code'
  | 'recovery-code'
  | 'sso'
  | 'sso-not-linked'
  | 'sso-email-unverified'
  | 'disabled'
  /** The operator has overridden the policy of the workspace. */
  | 'forced'
  /**
   * A personal key was revoked, or a request withdrawn, because its user was disabled, or is no longer a
   * member.
   */
  | 'user-ended'
  /** A personal key was revoked, because its user lacks the two-factor authentication that is required. */
  | 'two-factor-missing'
  /** The key of an agent was revoked, because its authorization code was used twice. */
  | 'code-reused'

interface Entry {
  workspaceId: string | null
  actor: Actor
  action: AuditAction
  /** The name at this time is stored, except for keys, whose label is joined when the log is read. */
  target: { id: string; name?: string }
  detail?: AuditDetail
  changes?: Changes
}

export const writeAudit = (db: Tx, services: Services, entry: Entry): Promise<void> =>
  insertRows(db, services, entry.action, [createAuditRow(services, entry)])

/** The entries of one action on many targets. */
export const writeAuditEntries = (db: Tx, services: Services, entries: readonly Entry[]): Promise<void> =>
  insertAudit(
    db,
    entries.map((entry) => createAuditRow(services, entry)),
  )

/** Repetitions of some actions within a minute share an entry, so that one caller cannot flood the log. */
async function insertRows(db: Tx, services: Services, action: AuditAction, rows: AuditRow[]): Promise<void> {
  if (!isRepeatable(action)) return insertAudit(db, rows)
  for (const row of rows) if (!(await mergeRepetition(db, services, row))) await insertAudit(db, [row])
}

/** Merges the row into the last one by the same actor about the same target. Returns false if it cannot. */
async function mergeRepetition(db: Tx, services: Services, row: AuditRow): Promise<boolean> {
  const last = await findRepeated(db, row, firstIdSince('aud', services.clock() - REPETITION_MS))
  const changes = last && mergeChanges(parseChanges(last.changes), parseChanges(row.changes))
  if (!changes) return false
  return updateRepeated(db, last, { count: (last.count ?? 1) + 1, changes: serializeChanges(changes) })
}

export const createAuditRow = (
  services: Pick<Services, 'ids' | 'clock'>,
  { workspaceId, actor, action, target, detail, changes }: Entry,
): AuditRow => ({
  id: services.ids('aud'),
  workspace_id: workspaceId,
  at: services.clock(),
  actor_kind: actor.kind,
  actor_id: actor.id,
  action,
  target_id: target.id,
  actor_name: actor.kind === 'user' ? actor.name : null,
  target_name: target.name ?? null,
  address: actor.kind === 'anonymous' ? actor.id : (actor.address ?? null),
  detail: detail ?? null,
  count: null,
  changes: serializeChanges(changes),
  position: null,
})

interface UserEntry {
  actor: Actor
  action: AuditAction
  user: { id: string; name: string }
  detail?: AuditDetail
  changes?: Changes
}

/** Writes the entry to the log of every workspace of the user. */
export async function writeUserAudit(db: Tx, services: Services, entry: UserEntry): Promise<void> {
  await insertRows(db, services, entry.action, await userRows(db, services, entry))
}

const REPETITION_MS = MINUTE_MS

/**
 * Like `writeUserAudit`, but equal failures within a minute share an entry, so that guessing does not flood
 * the log.
 */
export async function writeAuthFailure(
  db: Tx,
  services: Services,
  entry: UserEntry & { action: 'user.sign-in-failed' | 'user.confirmation-failed'; detail: AuditDetail },
): Promise<void> {
  // Serializes the failures of a user, so that concurrent ones find each other's row.
  await lockUser(db, entry.user.id)
  const since = firstIdSince('aud', services.clock() - REPETITION_MS)
  for (const row of await userRows(db, services, entry))
    if (!(await countRepetition(db, row, since))) await insertAudit(db, [row])
}

async function userRows(db: Tx, services: Services, { user, ...entry }: UserEntry): Promise<AuditRow[]> {
  const workspaces = await listMemberWorkspaceIds(db, user.id)
  const target = { id: user.id, name: user.name }
  return (workspaces.length > 0 ? workspaces : [null]).map((workspaceId) =>
    createAuditRow(services, { workspaceId, ...entry, target }),
  )
}

export interface AuditFilter {
  /** Id of a user or a key, name of an operator, or IP address. */
  actor?: string | undefined
  action?: string | undefined
  target?: string | undefined
  /** UTC timestamps; the end is excluded. */
  from?: string | undefined
  to?: string | undefined
}

/** Returns a page, newest first. */
export async function readAudit(
  ctx: Context & { role: Role },
  {
    limit = 50,
    cursor,
    ...filter
  }: AuditFilter & { limit?: number | undefined; cursor?: string | undefined },
) {
  const { role, actor } = ctx
  const { read, matches } = filteredEntries(ctx, parseFilter(filter, '/query'))
  const { page, next } = await filteredPage({ limit, cursor, read, filter: (rows) => rows.filter(matches) })
  const entries = page.map((row) => {
    const entry = describeEntry(row)
    if (role !== 'member' || isOwnAddress(row, actor)) return entry
    return { ...entry, address: null, changes: withoutAddresses(entry.changes) }
  })
  return { entries, next }
}

/** Whether the address is the user's, or that of an unauthenticated request about their account. */
const isOwnAddress = (row: AuditRow, { id }: Actor) =>
  row.actor_id === id || (row.actor_kind === 'anonymous' && row.target_id === id)

/** `read` may return entries that do not match or that the role may not see. */
export function filteredEntries(
  { store, workspaceId, role, actor }: Context & { role: Role },
  filter: ReturnType<typeof parseFilter>,
) {
  const { actorId, action, targetId } = filter
  const isVisible = (row: AuditRow) =>
    role !== 'member' || visibleActions.has(row.action) || row.target_id === actor.id
  return {
    read: (page: { after: string | undefined; limit: number }) =>
      listAudit(store.db, workspaceId, { ...page, ...filter }),
    matches: (row: AuditRow) =>
      isVisible(row) &&
      (actorId === undefined || row.actor_id === actorId) &&
      (action === undefined || row.action === action) &&
      (targetId === undefined || row.target_id === targetId),
  }
}

/** `location` is that of the filter in the request. */
export function parseFilter(
  { actor: actorId, action, target: targetId, from, to }: AuditFilter,
  location: '/query' | '/body',
) {
  const idSince = (timestamp: string | undefined, name: string) =>
    timestamp === undefined
      ? undefined
      : firstIdSince(
          'aud',
          parseTimestamp(timestamp, () => `${location}/${name}`),
        )
  return { actorId, action, targetId, fromId: idSince(from, 'from'), beforeId: idSince(to, 'to') }
}

type NamedRow = AuditRow & { actor_label: string | null; target_label: string | null }

export const describeEntry = (row: NamedRow) => ({
  id: row.id,
  at: toIso(row.at),
  actor: { kind: row.actor_kind, id: row.actor_id, name: row.actor_name ?? row.actor_label },
  action: row.action,
  target: {
    kind: targetKind(row.action),
    id: row.target_id,
    name: row.target_name ?? row.target_label,
  },
  address: row.address,
  detail: row.detail,
  count: row.count ?? 1,
  changes: parseChanges(row.changes),
})
