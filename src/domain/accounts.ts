// One's own account, and what the operator does to other people's.
import { Email } from '../contract/fields.ts'
import { endLinksFor } from '../store/links.ts'
import {
  clearSecondFactor,
  disableUser,
  enableUser,
  findPassword,
  findPasswordByEmail,
  findUser,
  findUserByEmail,
  hasPassword,
  hasUsers,
  holdPassword,
  listMemberships,
  listMembershipsAmong,
  listUsers,
  type Role,
  renameUser,
  setPassword,
  type UserRow,
} from '../store/people.ts'
import { deleteChallenges, deleteSession, deleteSessions, listSessions } from '../store/sessions.ts'
import type { Tx } from '../store/store.ts'
import { requireSession } from './actors.ts'
import { type Act, recordAct, recordOnPerson } from './audit.ts'
import type { Actor, PersonActor, World } from './context.ts'
import { Fault } from './fault.ts'
import { isoOf, isoOrNull } from './instants.ts'
import { type Checker, checker } from './invalid.ts'
import { isResetAllowed } from './link-limits.ts'
import { type LinkMade, makeLink } from './links.ts'
import { SLICE_ROWS, slicesOf } from './pages.ts'
import { membershipsOf } from './people.ts'
import { getBySlug } from './workspaces.ts'

const checkEmail: Checker<string> = checker(Email, 'email')

/** A session ends that long after it began, however busy it was. */
export const SESSION_MS_MAX = 14 * 24 * 60 * 60 * 1000

/** Whoever is signed in; undefined where the account was disabled. */
export async function findPerson(world: World, id: string): Promise<UserRow | undefined> {
  const user = await findUser(world.store.db, id)
  return user?.disabled_at === null ? user : undefined
}

export async function describeSelf(world: World, user: UserRow) {
  const [workspaces, withPassword] = await Promise.all([
    membershipsOf(world, user.id),
    hasPassword(world.store.db, user.id),
  ])
  return {
    person: {
      id: user.id,
      name: user.name,
      email: user.email,
      hasPassword: withPassword,
      hasSecondFactor: user.two_factor_enabled === 1,
    },
    workspaces,
  }
}

/** Acts on one's own account and writes it down, in one transaction that begins by making sure of the session. */
export const actOnSelf = (
  world: World,
  actor: PersonActor,
  action: Act,
  act: (db: Tx) => Promise<void>,
): Promise<void> =>
  world.store.transaction(async (db) => {
    await requireSession(db, actor)
    await act(db)
    await recordOnPerson(db, world, { actor, action, person: actor })
  })

/** The hash that a password is held against; undefined where somebody has none. */
export const passwordOf = (world: World, userId: string): Promise<string | undefined> =>
  findPassword(world.store.db, userId)

/** The account of an address with the hash of its password; undefined where there is none. */
export async function credentialsOf(world: World, email: string) {
  const { userId, passwordHash } = (await findPasswordByEmail(world.store.db, email.toLowerCase())) ?? {}
  return userId && passwordHash ? { userId, passwordHash } : undefined
}

/** `before` is the hash that the old password was held against: it must be the one in force to the end. */
export const changePassword = (
  world: World,
  actor: PersonActor,
  user: UserRow,
  { before, hashed }: { before: string; hashed: string },
) =>
  actOnSelf(world, actor, 'person.password-changed', async (db) => {
    if ((await holdPassword(db, user.id)) !== before)
      throw new Fault('conflict', { message: 'The password was changed meanwhile. Try again.' })
    const at = world.clock()
    await setPassword(db, { id: world.ids('idn'), userId: user.id, password: hashed, at })
    await deleteSessions(db, user.id, actor.session?.id)
    await deleteChallenges(db, user.id)
    await endLinksFor(db, user.email, 'reset', null, at)
  })

export const rename = (world: World, actor: PersonActor, name: string) =>
  actOnSelf(world, actor, 'person.renamed', (db) => renameUser(db, actor.id, name, world.clock()))

export async function readSessions(world: World, actor: PersonActor) {
  const rows = await listSessions(world.store.db, actor.id, world.clock())
  return {
    sessions: rows.map((row) => ({
      id: row.id,
      isThis: row.id === actor.session?.id,
      createdAt: isoOf(row.created_at),
      expiresAt: isoOf(Math.min(row.expires_at, row.created_at + SESSION_MS_MAX)),
      from: row.ip_address ?? '',
      agent: row.user_agent ?? '',
    })),
  }
}

export const endSession = (world: World, actor: PersonActor, id: string) =>
  actOnSelf(world, actor, 'person.session-ended', async (db) => {
    if (!(await deleteSession(db, actor.id, id))) throw new Fault('not_found')
  })

export const signOutEverywhere = (world: World, actor: PersonActor) =>
  actOnSelf(world, actor, 'person.signed-out-everywhere', (db) => deleteSessions(db, actor.id))

/** Makes a link by which somebody joins a workspace; the operator vouches for the address. */
export async function inviteByOperator(
  world: World,
  actor: Actor,
  given: { email: string; workspace: string; role: Role },
): Promise<LinkMade> {
  checkEmail(given.email)
  const email = given.email.toLowerCase()
  const { id: workspaceId } = await getBySlug(world, given.workspace)
  return world.store.transaction(async (db) => {
    const user = await findUserByEmail(db, email)
    if (user && (await listMemberships(db, user.id)).some(({ slug }) => slug === given.workspace))
      throw new Fault('conflict', {
        message: `${email} belongs to the workspace "${given.workspace}" already. "adit admin user reset" makes a link to set another password.`,
      })
    const made = await makeLink(db, world, {
      purpose: 'join',
      email,
      workspaceId,
      role: given.role,
      createdBy: { id: null, name: `operator ${actor.id}` },
      provesEmail: true,
    })
    const subject = { subjectId: made.id, subjectName: `${email} as ${given.role}` }
    await recordAct(db, world, { workspaceId, actor, action: 'person.invited', ...subject })
    return made
  })
}

/** Makes a link by which somebody sets another password; whoever lost the second factor too is freed of it. */
export async function makeResetLink(
  world: World,
  actor: Actor,
  user: UserRow,
  { clearsSecondFactor = false } = {},
): Promise<LinkMade> {
  if (user.disabled_at !== null)
    throw new Fault('conflict', {
      message: `${user.email} is not let in any more. "adit admin user restore" changes that.`,
    })
  return world.store.transaction(async (db) => {
    if (clearsSecondFactor && (await clearSecondFactor(db, user.id)))
      await recordOnPerson(db, world, { actor, action: 'person.second-factor-cleared', person: user })
    return resetLink(db, world, actor, user)
  })
}

/** For a link that is sent by mail, whoever asked for it. Undefined where the address had too many, or is disabled. */
export const makeMailedResetLink = (world: World, user: UserRow): Promise<LinkMade | undefined> =>
  world.store.transaction(async (db) => {
    if (user.disabled_at !== null || !(await isResetAllowed(db, world, user))) return undefined
    return resetLink(db, world, { kind: 'operator', id: 'reset by mail' }, user)
  })

async function resetLink(db: Tx, world: World, actor: Actor, user: UserRow): Promise<LinkMade> {
  const made = await makeLink(db, world, {
    purpose: 'reset',
    email: user.email,
    workspaceId: null,
    role: null,
    createdBy: { id: null, name: `operator ${actor.id}` },
    provesEmail: true,
  })
  await recordOnPerson(db, world, { actor, action: 'person.reset-link-made', person: user })
  return made
}

export const findByEmail = (world: World, email: string): Promise<UserRow | undefined> =>
  findUserByEmail(world.store.db, email.toLowerCase())

export async function getUserByEmail(world: World, email: string): Promise<UserRow> {
  const user = await findByEmail(world, email)
  if (user) return user
  throw new Fault('not_found', {
    message: `There is nobody with the address ${email}. "adit admin user list" shows who there is.`,
  })
}

/** Whether anybody can sign in at all. */
export const hasPeople = (world: World): Promise<boolean> => hasUsers(world.store.db)

/** In slices. */
export async function* listEverybody(world: World) {
  const { db } = world.store
  const slices = slicesOf<UserRow>((last) => listUsers(db, { after: last?.email, limit: SLICE_ROWS }))
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
      createdAt: isoOf(user.created_at),
      disabledAt: isoOrNull(user.disabled_at),
      workspaces: (byUser.get(user.id) ?? []).map(({ slug, role }) => ({ slug, role })),
    }))
  }
}

/** Signed out everywhere, and not let in any more; or let in again. */
export async function setDisabled(world: World, actor: Actor, email: string, disabled: boolean) {
  const user = await getUserByEmail(world, email)
  await world.store.transaction(async (db) => {
    if (!disabled) await enableUser(db, user.id)
    else if (await disableUser(db, user.id, world.clock())) {
      await deleteSessions(db, user.id)
      await deleteChallenges(db, user.id)
    } else return
    const action = disabled ? 'person.disabled' : 'person.enabled'
    await recordOnPerson(db, world, { actor, action, person: user })
  })
  return { email: user.email, disabled }
}
