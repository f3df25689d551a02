// User accounts: operations of users on their own account, and of the operator on any.

import type { AuditAction } from '../../../contract/audit-actions.ts'
import { Email } from '../../../contract/fields.ts'
import { deleteChallenges } from '../../store/accounts/challenges.ts'
import { endLinks, hasOpenInvitation } from '../../store/accounts/links.ts'
import {
  findMembership,
  listMemberships,
  listMembershipsAmong,
  type Role,
} from '../../store/accounts/members.ts'
import { findPassword, findPasswordByEmail, setPassword } from '../../store/accounts/passwords.ts'
import { deleteSession, deleteSessions, listSessions } from '../../store/accounts/sessions.ts'
import { deleteTwoFactor, lacksTwoFactor } from '../../store/accounts/two-factors.ts'
import {
  findUser,
  findUserByEmail,
  hasUsers,
  listUsers,
  lockUser,
  renameUser,
  setDisabledAt,
  type UserRow,
} from '../../store/accounts/users.ts'
import type { Tx } from '../../store/engine/store.ts'
import { awaitPropagation, type KeyChange, publishChanges } from '../../verification/propagation.ts'
import { requireNotArchived, requireSession, sessionEnd } from '../actors.ts'
import { type Changes, changesBetween } from '../audit/changes.ts'
import { writeAudit, writeUserAudit } from '../audit/entries.ts'
import type { Actor, Caller, Services, UserActor } from '../context.ts'
import { recordInvitation } from '../events/record.ts'
import { Fault } from '../fault.ts'
import { revokeKeysWithoutTwoFactor, revokePersonalKeys } from '../keys/personal.ts'
import { readSlices, SLICE_ROWS } from '../pagination.ts'
import { isoOrNull, toIso } from '../timestamps.ts'
import { type Checker, checker } from '../validation.ts'
import { describeArchive, isRestorable } from '../workspaces/archive.ts'
import { getBySlug } from '../workspaces/manage.ts'
import { isResetAllowed } from './link-limits.ts'
import { type CreatedLink, createLink } from './links.ts'
import { requireSamePassword } from './sign-ins.ts'

const checkEmail: Checker<string> = checker(Email, 'email')

/** Undefined if the user does not exist or is disabled. */
export async function findEnabledUser(services: Services, id: string): Promise<UserRow | undefined> {
  const user = await findUser(services.store.db, id)
  return user?.disabled_at === null ? user : undefined
}

export async function describeSelf(services: Services, user: UserRow) {
  const { db } = services.store
  const [memberships, password, withoutTwoFactor] = await Promise.all([
    listMemberships(db, user.id),
    findPassword(db, user.id),
    lacksTwoFactor(db, user.id),
  ])
  return {
    user: {
      id: user.id,
      name: user.name,
      email: user.email,
      hasPassword: password !== undefined,
      hasTwoFactor: user.two_factor_enabled === 1,
    },
    canCreateWorkspaces: services.usersCreateWorkspaces,
    workspaces: memberships
      .filter(({ archived_at }) => archived_at === null || isRestorable(archived_at, services.clock()))
      .map(({ slug, name, role, archived_at, two_factor_required_at }) => ({
        slug,
        name,
        role,
        needsTwoFactor: two_factor_required_at !== null && withoutTwoFactor,
        archive: describeArchive(archived_at),
      })),
  }
}

/** Checks the session, updates the user's own account and writes the audit entry in one transaction. */
export const updateOwnAccount = <T>(
  services: Services,
  actor: UserActor,
  action: AuditAction,
  act: (db: Tx) => Promise<T>,
  describeChanges: (result: T) => Changes = () => ({}),
): Promise<T> =>
  services.store.transaction(async (db) => {
    await requireSession(db, services, actor)
    const result = await act(db)
    await writeUserAudit(db, services, { actor, action, user: actor, changes: describeChanges(result) })
    return result
  })

/** The password hash of a user; undefined if the user has none. */
export const findPasswordHash = (services: Services, userId: string): Promise<string | undefined> =>
  findPassword(services.store.db, userId)

/** User id and password hash of an address; undefined if there are none. */
export async function findCredentials(services: Services, email: string) {
  const { userId, passwordHash } = (await findPasswordByEmail(services.store.db, email.toLowerCase())) ?? {}
  return userId && passwordHash ? { userId, passwordHash } : undefined
}

/**
 * `before` is the hash that the current password was verified against; it must not have changed meanwhile.
 */
export const changePassword = (
  services: Services,
  actor: UserActor,
  user: UserRow,
  { before, hashed }: { before: string; hashed: string },
) =>
  updateOwnAccount(services, actor, 'user.password-changed', async (db) => {
    await requireSamePassword(db, user.id, before)
    const at = services.clock()
    await setPassword(db, { id: services.ids('idn'), userId: user.id, password: hashed, at })
    await deleteSessions(db, user.id, actor.session?.id)
    await deleteChallenges(db, user.id)
    await endLinks(db, { purpose: 'reset', email: user.email, workspace_id: null }, at)
  })

export const rename = (services: Services, actor: UserActor, name: string) =>
  updateOwnAccount(
    services,
    actor,
    'user.renamed',
    async (db) => {
      const before = await lockUser(db, actor.id)
      await renameUser(db, actor.id, name, services.clock())
      return { name: before?.name ?? actor.name }
    },
    (before) => changesBetween(before, { name }),
  )

export async function readSessions(services: Services, actor: UserActor) {
  const rows = await listSessions(services.store.db, actor.id, services.clock())
  return {
    sessions: rows.map((row) => ({
      id: row.id,
      isThis: row.id === actor.session?.id,
      createdAt: toIso(row.created_at),
      expiresAt: toIso(sessionEnd(row)),
      address: row.ip_address ?? '',
      agent: row.user_agent ?? '',
    })),
  }
}

export const endSession = (services: Services, actor: UserActor, id: string) =>
  updateOwnAccount(
    services,
    actor,
    'user.session-ended',
    async (db) => {
      const session = await deleteSession(db, actor.id, id)
      if (!session) throw new Fault('not_found')
      return session
    },
    ({ ip_address }) => ({ sessionAddress: [ip_address, null] }),
  )

export const signOut = (services: Services, actor: UserActor) =>
  updateOwnAccount(services, actor, 'user.signed-out', (db) =>
    deleteSession(db, actor.id, actor.session?.id as string),
  )

export const signOutEverywhere = (services: Services, actor: UserActor) =>
  updateOwnAccount(services, actor, 'user.signed-out-everywhere', (db) => deleteSessions(db, actor.id))

/** Creates an invitation link; the operator vouches for the address. */
export async function inviteByOperator(
  services: Services,
  actor: Caller,
  input: { email: string; workspace: string; role: Role },
): Promise<CreatedLink> {
  checkEmail(input.email)
  const email = input.email.toLowerCase()
  const workspace = await getBySlug(services, input.workspace)
  requireNotArchived(workspace, actor)
  const { id: workspaceId } = workspace
  return services.store.transaction(async (db) => {
    const user = await findUserByEmail(db, email)
    if (user && (await findMembership(db, input.workspace, user.id)))
      throw new Fault('conflict', {
        message:
          `${email} is already a member of workspace "${input.workspace}". ` +
          'To create a password reset link, run `adit admin user reset`.',
      })
    const link = await createLink(db, services, {
      purpose: 'join',
      email,
      workspaceId,
      role: input.role,
      createdBy: { id: null, name: `operator ${actor.id}` },
      provesEmail: true,
    })
    await writeAudit(db, services, {
      workspaceId,
      actor,
      action: 'user.invited',
      target: { id: link.id, name: email },
      changes: { role: [null, input.role] },
    })
    const invitation = { ...link, email, role: input.role }
    await recordInvitation(db, services, { workspaceId, actor, invitation })
    return link
  })
}

/** Creates a password reset link, and optionally disables two-factor authentication. */
export async function createResetLink(
  services: Services,
  actor: Caller,
  user: UserRow,
  { disablesTwoFactor = false } = {},
): Promise<CreatedLink> {
  if (user.disabled_at !== null)
    throw new Fault('conflict', {
      message: `${user.email} is disabled. Enable the account with \`adit admin user restore\` first.`,
    })
  const { link, change } = await services.store.transaction(async (db) => {
    const link = await resetLink(db, services, actor, user)
    if (!disablesTwoFactor || !(await deleteTwoFactor(db, user.id))) return { link }
    await writeUserAudit(db, services, { actor, action: 'user.two-factor-reset', user })
    return { link, change: await revokeKeysWithoutTwoFactor(db, services, actor, { userId: user.id }) }
  })
  if (disablesTwoFactor) await awaitPropagation(services, change)
  return link
}

/**
 * Creates a reset link to send by mail; undefined if the user is disabled or the limit of links is reached.
 */
export const createMailedResetLink = (
  services: Services,
  user: UserRow,
  address: string,
): Promise<CreatedLink | undefined> =>
  services.store.transaction(async (db) => {
    if (user.disabled_at !== null || !(await isResetAllowed(db, services, user))) return undefined
    return resetLink(db, services, { kind: 'anonymous', id: address }, user)
  })

async function resetLink(db: Tx, services: Services, actor: Actor, user: UserRow): Promise<CreatedLink> {
  const link = await createLink(db, services, {
    purpose: 'reset',
    email: user.email,
    workspaceId: null,
    role: null,
    createdBy: { id: null, name: `${actor.kind} ${actor.id}` },
    provesEmail: true,
  })
  await writeUserAudit(db, services, { actor, action: 'user.reset-link-created', user })
  return link
}

export const findByEmail = (services: Services, email: string): Promise<UserRow | undefined> =>
  findUserByEmail(services.store.db, email.toLowerCase())

export async function getUserByEmail(services: Services, email: string): Promise<UserRow> {
  const user = await findByEmail(services, email)
  if (user) return user
  throw new Fault('not_found', {
    message: `No user with the address ${email}. List users with \`adit admin user list\`.`,
  })
}

/** Whether users have joined, or may by an open invitation. */
export async function describeFirstUsers({ store, clock }: Services): Promise<'joined' | 'invited' | 'none'> {
  if (await hasUsers(store.db)) return 'joined'
  return (await hasOpenInvitation(store.db, clock())) ? 'invited' : 'none'
}

/** Yields slices of users with their memberships. */
export async function* listAllUsers(services: Services) {
  const { db } = services.store
  const slices = readSlices<UserRow>((last) => listUsers(db, { after: last?.email, limit: SLICE_ROWS }))
  for await (const users of slices) {
    const memberships = await listMembershipsAmong(
      db,
      users.map(({ id }) => id),
    )
    const byUser = Map.groupBy(memberships, ({ user_id }) => user_id)
    yield users.map((user) => ({
      id: user.id,
      name: user.name,
      email: user.email,
      createdAt: toIso(user.created_at),
      disabledAt: isoOrNull(user.disabled_at),
      workspaces: (byUser.get(user.id) ?? []).map(({ slug, role }) => ({ slug, role })),
    }))
  }
}

/**
 * Disables a user, ends their sessions and revokes their personal keys, or enables the user again, who then
 * needs new keys.
 */
export async function setDisabled(services: Services, actor: Caller, email: string, disabled: boolean) {
  const user = await getUserByEmail(services, email)
  const position = await services.store.transaction(async (db) => {
    if (disabled) return publishChanges(db, services, (await disable(db, services, actor, user)) ?? [])
    if (await setDisabledAt(db, user.id, null))
      await writeUserAudit(db, services, { actor, action: 'user.enabled', user })
    return undefined
  })
  if (disabled) await awaitPropagation(services, position)
  return { email: user.email, disabled }
}

/** The changes to publish; undefined if the user is disabled already. */
export async function disable(
  db: Tx,
  services: Services,
  actor: Caller,
  user: UserRow,
): Promise<KeyChange[] | undefined> {
  // Locks the user first: a key that is created meanwhile is rejected, or is revoked here.
  if (!(await setDisabledAt(db, user.id, services.clock()))) return undefined
  await writeUserAudit(db, services, { actor, action: 'user.disabled', user })
  await deleteSessions(db, user.id)
  await deleteChallenges(db, user.id)
  return revokePersonalKeys(db, services, actor, { userId: user.id })
}
