// Invitation and password reset links. A link works once, for 24 hours; only its hash is stored.
import { hash } from 'node:crypto'
import {
  endLink,
  endLinksFor,
  endSetUpLinks,
  findLink,
  insertLink,
  type LinkRow,
  listLinksTo,
} from '../store/links.ts'
import { insertMember, listWorkspaceIdsOf, type Role } from '../store/members.ts'
import { setPassword } from '../store/passwords.ts'
import { deleteChallenges, deleteSessions } from '../store/sessions.ts'
import type { Tx } from '../store/store.ts'
import { findUserByEmail, insertUser, type UserRow, verifyEmail } from '../store/users.ts'
import { getWorkspace } from '../store/workspaces.ts'
import { DAY_MS } from '../time.ts'
import { writeAudit, writeUserAudit } from './audit.ts'
import type { Services, UserActor } from './context.ts'
import { Fault, invalid } from './fault.ts'
import { requireGoodPassword } from './passwords.ts'
import { isoOf } from './timestamps.ts'

const LINK_MS = DAY_MS
const SECRET_BYTES = 32

export interface CreatedLink {
  id: string
  email: string | null
  role: Role | null
  /** Secret part of the link; only its hash is stored. */
  secret: string
  invitedBy: string
  createdAt: string
  expiresAt: string
}

interface NewLink {
  purpose: LinkRow['purpose']
  email: string | null
  workspaceId: string | null
  role: Role | null
  createdBy: { id: string | null; name: string }
  /** Whether the link proves control of the address: it is mailed there, or the operator creates it. */
  provesEmail: boolean
}

/** The secret is in the fragment, so that it does not reach servers and logs. */
export const linkAddress = (baseUrl: string, secret: string) => `${baseUrl}/link#${secret}`

/** Creates a link in the caller's transaction, and ends earlier ones for the same purpose and address. */
export async function createLink(db: Tx, services: Services, given: NewLink): Promise<CreatedLink> {
  const now = services.clock()
  const secret = Buffer.from(services.random(SECRET_BYTES)).toString('base64url')
  if (given.email !== null) await endLinksFor(db, given.email, given.purpose, given.workspaceId, now)
  const row: LinkRow = {
    id: services.ids('lnk'),
    hash: hashOf(secret),
    purpose: given.purpose,
    email: given.email,
    proves_email: given.provesEmail ? 1 : 0,
    workspace_id: given.workspaceId,
    role: given.role,
    created_by: given.createdBy.name,
    creator_id: given.createdBy.id,
    created_at: now,
    expires_at: now + LINK_MS,
    ended_at: null,
  }
  await insertLink(db, row)
  return {
    id: row.id,
    email: row.email,
    role: row.role,
    secret,
    invitedBy: row.created_by,
    createdAt: isoOf(now),
    expiresAt: isoOf(row.expires_at),
  }
}

const hashOf = (secret: string) => hash('sha256', secret, 'hex')

/** The signed-in user who opens a link, if any. */
export type Opener = { id: string; email: string } | undefined

export async function readLink(services: Services, secret: string, opener: Opener) {
  const { db } = services.store
  const row = await findLink(db, hashOf(secret), services.clock())
  if (!row) throw linkExpired()
  const user = row.email === null ? undefined : await findUserByEmail(db, row.email)
  const workspace = row.workspace_id === null ? null : await getWorkspace(db, row.workspace_id)
  return {
    purpose: row.purpose,
    email: row.email,
    workspace: workspace && { slug: workspace.slug, name: workspace.name },
    role: row.role,
    step: stepOf(row, user, opener),
    isNew: row.purpose === 'join' && !user,
  }
}

/**
 * Resets and new accounts choose a password; signed-in users accept; others with an account sign in first.
 */
function stepOf(row: LinkRow, user: UserRow | undefined, opener: Opener): 'choose' | 'sign_in' | 'accept' {
  if (row.purpose === 'reset') return 'choose'
  if (opener && (row.email === null || row.email === opener.email)) return 'accept'
  return user ? 'sign_in' : 'choose'
}

export interface LinkUse {
  link: string
  email?: string | undefined
  name?: string | undefined
  password?: string | undefined
  /** Client IP address. */
  address: string
}

/** Uses the link. Returns the credentials to sign in with, or undefined if the user is signed in already. */
export async function applyLink(
  services: Services,
  given: LinkUse,
  opener: Opener,
  hashPassword: (password: string) => Promise<string>,
): Promise<{ email: string; password: string } | undefined> {
  const { step, email: named, isNew } = await readLink(services, given.link, opener)
  if (step === 'sign_in')
    throw new Fault('unauthorized', { message: `Sign in as ${named} to accept this invitation.` })
  if (step === 'accept') {
    await services.store.transaction((db) => accept(db, services, given, opener as NonNullable<Opener>))
    return undefined
  }
  const email = (named ?? requireField(given.email, 'email')).toLowerCase()
  const password = requireField(given.password, 'password')
  const name = isNew ? requireField(given.name, 'name') : ''
  await requireGoodPassword(password, email)
  // Hashing is slow by design, so it runs before any lock is taken.
  const hashed = await hashPassword(password)
  await services.store.transaction((db) => choose(db, services, given, { email, name, hashed }))
  return { email, password }
}

async function accept(
  db: Tx,
  services: Services,
  { link, address }: LinkUse,
  opener: NonNullable<Opener>,
): Promise<void> {
  const row = await consumeLink(db, services, link)
  const user = await findUserByEmail(db, opener.email)
  if (!user) throw linkExpired()
  await join(db, services, row, user, address)
}

async function choose(
  db: Tx,
  services: Services,
  { link, address }: LinkUse,
  { email, name, hashed }: { email: string; name: string; hashed: string },
): Promise<void> {
  const row = await consumeLink(db, services, link)
  const now = services.clock()
  let user = await findUserByEmail(db, email)
  // An invitation must not take over an account that was created meanwhile.
  if (user && row.purpose === 'join') throw hasAccount(email)
  if (!user && row.purpose === 'reset') throw linkExpired()
  if (!user) {
    user = newUser(services, { email, name, verified: row.proves_email === 1 })
    if (!(await insertUser(db, user))) throw hasAccount(email)
  }
  await setPassword(db, { id: services.ids('idn'), userId: user.id, password: hashed, at: now })
  if (row.purpose === 'join') return join(db, services, row, user, address)
  if (row.proves_email === 1) await verifyEmail(db, user.id)
  // Ends sessions and challenges that were created with the old password.
  await deleteSessions(db, user.id)
  await deleteChallenges(db, user.id)
  const actor = actorOf(user, address)
  await writeUserAudit(db, services, { actor, action: 'person.password-reset', user })
}

/** A user who is authenticated by a link, without a session. */
const actorOf = ({ id, name }: UserRow, address: string): UserActor => ({
  kind: 'person',
  id,
  name,
  address,
})

export const newUser = (
  services: Services,
  { email, name, verified }: { email: string; name: string; verified: boolean },
): UserRow => ({
  id: services.ids('usr'),
  name,
  email,
  email_verified: verified ? 1 : 0,
  image: null,
  two_factor_enabled: 0,
  created_at: services.clock(),
  updated_at: services.clock(),
  disabled_at: null,
})

/** Adds the user to the workspace of an invitation. */
async function join(db: Tx, services: Services, row: LinkRow, user: UserRow, address: string): Promise<void> {
  if (row.workspace_id === null || row.role === null) throw linkExpired()
  const workspaceId = row.workspace_id
  const isNew = await insertMember(db, {
    workspace_id: workspaceId,
    user_id: user.id,
    role: row.role,
    created_at: services.clock(),
  })
  if (!isNew) throw new Fault('conflict', { message: 'You are already a member of this workspace.' })
  if (row.role === 'owner') await endSetUpLinks(db, workspaceId, services.clock())
  const subject = { subjectId: user.id, subjectName: user.name }
  await writeAudit(db, services, {
    workspaceId,
    actor: actorOf(user, address),
    action: 'person.joined',
    ...subject,
  })
}

/** Whether there is an open invitation for the verified address. */
export async function isInvited(db: Tx, services: Services, email: string): Promise<boolean> {
  return (await listLinksTo(db, email, services.clock())).length > 0
}

/** Accepts all open invitations of a user whose address was verified without the link. */
export async function joinAsInvited(
  db: Tx,
  services: Services,
  user: UserRow,
  address: string,
): Promise<void> {
  const joined = await listWorkspaceIdsOf(db, user.id)
  for (const row of await listLinksTo(db, user.email, services.clock()))
    if (!joined.includes(row.workspace_id ?? '') && (await endLink(db, row.hash, services.clock())))
      await join(db, services, row, user, address)
}

async function consumeLink(db: Tx, services: Services, secret: string): Promise<LinkRow> {
  const row = await endLink(db, hashOf(secret), services.clock())
  if (!row) throw linkExpired()
  return row
}

const hasAccount = (email: string) =>
  new Fault('conflict', {
    message: `${email} already has an account. Sign in, then open the link again.`,
  })

const linkExpired = () =>
  new Fault('not_found', {
    message: 'This link is invalid, expired or already used. Ask for a new one.',
  })

function requireField(value: string | undefined, name: string): string {
  if (value === undefined) throw invalid(`/body/${name}`, 'is required')
  return value
}
