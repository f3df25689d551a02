// One's own account, and what the operator does to other people's.
import { Email } from '../contract/fields.ts'
import {
  disableUser,
  enableUser,
  findUser,
  findUserByEmail,
  hasPassword,
  listUsers,
  type Role,
  renameUser,
  type UserRow,
} from '../store/people.ts'
import { deleteSession, deleteSessions, listSessions, useCode } from '../store/sessions.ts'
import type { Db } from '../store/store.ts'
import { requireSession } from './actors.ts'
import { type Act, recordAct } from './audit.ts'
import type { Actor, PersonActor, World } from './context.ts'
import { Fault } from './fault.ts'
import { isoOf, isoOrNull } from './instants.ts'
import { type Checker, checker } from './invalid.ts'
import { type LinkMade, makeLink } from './links.ts'
import { membershipsOf } from './people.ts'
import { hashSecret } from './secret.ts'
import { getBySlug } from './workspaces.ts'

const checkEmail: Checker<string> = checker(Email, 'email')

/** A session ends that long after it began, however busy it was. */
export const SESSION_MS_MAX = 14 * 24 * 60 * 60 * 1000
/** An authenticator's code is taken a step early or late: that long it must not be taken twice. */
const CODE_MS = 3 * 60 * 1000

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
  act: (db: Db) => Promise<void>,
): Promise<void> =>
  world.store.transaction(async (db) => {
    await requireSession(db, actor)
    await act(db)
    await recordAct(db, world, {
      workspaceId: null,
      actor,
      action,
      subjectId: actor.id,
      subjectName: actor.name,
    })
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

/** Whoever saw a code over somebody's shoulder must not use it again. False where it was used before. */
export function takeCode(db: Db, world: World, userId: string, code: string): Promise<boolean> {
  const at = world.clock()
  return useCode(db, { userId, hash: hashSecret(code), at, forgetBefore: at - CODE_MS })
}

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
    if (user && (await membershipsOf(world, user.id)).some(({ slug }) => slug === given.workspace))
      throw new Fault('conflict', {
        message: `${email} belongs to the workspace "${given.workspace}" already. "adit admin user reset" makes a link to set another password.`,
      })
    const made = await makeLink(db, world, {
      purpose: 'join',
      email,
      workspaceId,
      role: given.role,
      createdBy: `operator ${actor.id}`,
      provesEmail: true,
    })
    const subject = { subjectId: made.id, subjectName: email }
    await recordAct(db, world, { workspaceId, actor, action: 'person.invited', ...subject })
    return made
  })
}

/** Makes a link by which somebody sets another password. */
export const makeResetLink = (world: World, actor: Actor, user: UserRow): Promise<LinkMade> =>
  world.store.transaction(async (db) => {
    const made = await makeLink(db, world, {
      purpose: 'reset',
      email: user.email,
      workspaceId: null,
      role: null,
      createdBy: actor.kind === 'person' ? actor.name : `operator ${actor.id}`,
      provesEmail: true,
    })
    await recordOn(db, world, actor, 'person.reset-link-made', user)
    return made
  })

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
export const hasPeople = async (world: World): Promise<boolean> =>
  (await listUsers(world.store.db)).length > 0

export async function listEverybody(world: World) {
  const rows = await listUsers(world.store.db)
  const byId = Map.groupBy(rows, ({ id }) => id)
  return [...byId.values()].map((list) => {
    const { id, name, email, created_at, disabled_at } = list[0] as (typeof rows)[number]
    const workspaces = list.flatMap(({ slug, role }) => (slug && role ? [{ slug, role }] : []))
    return { id, name, email, createdAt: isoOf(created_at), disabledAt: isoOrNull(disabled_at), workspaces }
  })
}

/** Signed out everywhere, and not let in any more; or let in again. */
export async function setDisabled(world: World, actor: Actor, email: string, disabled: boolean) {
  const user = await getUserByEmail(world, email)
  await world.store.transaction(async (db) => {
    if (!disabled) await enableUser(db, user.id)
    else if (await disableUser(db, user.id, world.clock())) await deleteSessions(db, user.id)
    else return
    await recordOn(db, world, actor, disabled ? 'person.disabled' : 'person.enabled', user)
  })
  return { email: user.email, disabled }
}

const recordOn = (db: Db, world: World, actor: Actor, action: Act, user: UserRow) =>
  recordAct(db, world, { workspaceId: null, actor, action, subjectId: user.id, subjectName: user.name })
