// Invitation and password reset links. A link works once, for 24 hours; only its hash is stored.
import { hashSecret } from '../../../lib/credentials/secret.ts'
import { deleteChallenges } from '../../store/accounts/challenges.ts'
import {
  endLink,
  endLinks,
  findLink,
  insertLink,
  type LinkRow,
  listOpenInvitationsTo,
} from '../../store/accounts/links.ts'
import { insertMember, listMemberWorkspaceIds, type Role } from '../../store/accounts/members.ts'
import { setPassword } from '../../store/accounts/passwords.ts'
import { deleteSessions } from '../../store/accounts/sessions.ts'
import {
  findUserByEmail,
  insertUser,
  lockUser,
  type UserRow,
  verifyEmail,
} from '../../store/accounts/users.ts'
import type { Tx } from '../../store/engine/store.ts'
import { getWorkspace, lockWorkspace } from '../../store/workspaces.ts'
import { awaitPropagation, type PublishedChange } from '../../verification/propagation.ts'
import { writeAudit, writeUserAudit } from '../audit/entries.ts'
import type { Services } from '../context.ts'
import { memberInEvent, recordEvent } from '../events/record.ts'
import { Fault, invalid } from '../fault.ts'
import { revokeKeysWithoutTwoFactor } from '../keys/personal.ts'
import { toIso } from '../timestamps.ts'
import { LINK_MS } from './link-limits.ts'
import { requireGoodPassword } from './passwords.ts'
import { userActor } from './sign-ins.ts'

const SECRET_BYTES = 32

/** A user, with their name at that time, or the operator. */
interface Inviter {
  kind: 'user' | 'operator'
  name: string
}

export interface CreatedLink {
  id: string
  email: string | null
  role: Role | null
  /** Secret part of the link; only its hash is stored. */
  secret: string
  invitedBy: Inviter
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

/** Only a link of a user has the id of its creator; a user may be called "operator root". */
export const describeInviter = ({ created_by, creator_id }: LinkRow): Inviter =>
  creator_id === null
    ? { kind: 'operator', name: created_by.replace(/^operator /, '') }
    : { kind: 'user', name: created_by }

/** The secret is in the fragment, so that it does not reach servers and logs. */
export const linkUrl = (baseUrl: string, secret: string) => `${baseUrl}/link#${secret}`

/** Creates a link in the caller's transaction, and ends earlier ones for the same purpose and address. */
export async function createLink(db: Tx, services: Services, input: NewLink): Promise<CreatedLink> {
  const now = services.clock()
  const secret = Buffer.from(services.random(SECRET_BYTES)).toString('base64url')
  const { purpose, email, workspaceId } = input
  if (email !== null) await endLinks(db, { purpose, email, workspace_id: workspaceId }, now)
  const row: LinkRow = {
    id: services.ids('lnk'),
    hash: hashSecret(secret),
    purpose,
    email,
    proves_email: input.provesEmail ? 1 : 0,
    workspace_id: workspaceId,
    role: input.role,
    created_by: input.createdBy.name,
    creator_id: input.createdBy.id,
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
    invitedBy: describeInviter(row),
    createdAt: toIso(now),
    expiresAt: toIso(row.expires_at),
  }
}

/** The signed-in user who opens a link. */
interface CurrentUser {
  id: string
  email: string
}

export async function readLink(services: Services, secret: string, currentUser: CurrentUser | undefined) {
  const { db } = services.store
  const find = () => findLink(db, hashSecret(secret), services.clock())
  const row = await find()
  if (!row) throw invalidLinkFault()
  const user = row.email === null ? undefined : await findUserByEmail(db, row.email)
  // The account may have been created with this link since it was read.
  if (user && !(await find())) throw invalidLinkFault()
  const workspace = row.workspace_id === null ? null : await getWorkspace(db, row.workspace_id)
  if (workspace && workspace.archived_at !== null) throw invalidLinkFault()
  return {
    purpose: row.purpose,
    email: row.email,
    workspace: workspace && { slug: workspace.slug, name: workspace.name },
    role: row.role,
    step: nextStep(row, user, currentUser),
    isNew: row.purpose === 'join' && !user,
  }
}

/**
 * Resets and new accounts choose a password; signed-in users accept; others with an account sign in first.
 */
function nextStep(
  row: LinkRow,
  user: UserRow | undefined,
  currentUser: CurrentUser | undefined,
): 'choose' | 'sign_in' | 'accept' {
  if (row.purpose === 'reset') return 'choose'
  if (currentUser && (row.email === null || row.email === currentUser.email)) return 'accept'
  return user ? 'sign_in' : 'choose'
}

interface RedeemLinkInput {
  link: string
  email?: string | undefined
  name?: string | undefined
  password?: string | undefined
  ipAddress: string
}

/** Uses the link. Returns the credentials to sign in with, or undefined if the user is signed in already. */
export async function redeemLink(
  services: Services,
  input: RedeemLinkInput,
  currentUser: CurrentUser | undefined,
  hashPassword: (password: string) => Promise<string>,
): Promise<{ email: string; password: string } | undefined> {
  const { step, email: linkEmail, isNew } = await readLink(services, input.link, currentUser)
  if (step === 'sign_in')
    throw new Fault('unauthorized', { message: `Sign in as ${linkEmail} to accept this invitation.` })
  if (step === 'accept') {
    await services.store.transaction((db) =>
      acceptInvitation(db, services, input, currentUser as CurrentUser),
    )
    return undefined
  }
  const email = (linkEmail ?? requireField(input.email, 'email')).toLowerCase()
  const password = requireField(input.password, 'password')
  const name = isNew ? requireField(input.name, 'name') : ''
  await requireGoodPassword(password, email)
  // Hashing is slow by design, so it runs before any lock is taken.
  const hashed = await hashPassword(password)
  const change = await services.store.transaction((db) =>
    setPasswordByLink(db, services, input, { email, name, hashed }),
  )
  if (change) await awaitPropagation(services, change)
  return { email, password }
}

async function acceptInvitation(
  db: Tx,
  services: Services,
  { link, ipAddress }: RedeemLinkInput,
  currentUser: CurrentUser,
): Promise<void> {
  const row = await consumeLink(db, services, link)
  const user = await findUserByEmail(db, currentUser.email)
  if (!user) throw invalidLinkFault()
  await addInvitedMember(db, services, row, user, ipAddress)
}

async function setPasswordByLink(
  db: Tx,
  services: Services,
  { link, ipAddress }: RedeemLinkInput,
  { email, name, hashed }: { email: string; name: string; hashed: string },
): Promise<PublishedChange | undefined> {
  const row = await consumeLink(db, services, link)
  const now = services.clock()
  let user = await findUserByEmail(db, email)
  // An invitation must not take over an account that was created meanwhile.
  if (user && row.purpose === 'join') throw accountExistsFault(email)
  if (!user && row.purpose === 'reset') throw invalidLinkFault()
  if (!user) {
    user = newUser(services, { email, name, verified: row.proves_email === 1 })
    if (!(await insertUser(db, user))) throw accountExistsFault(email)
  }
  await lockUser(db, user.id)
  await setPassword(db, { id: services.ids('idn'), userId: user.id, password: hashed, at: now })
  if (row.purpose === 'join') {
    await addInvitedMember(db, services, row, user, ipAddress)
    return undefined
  }
  if (row.proves_email === 1) await verifyEmail(db, user.id)
  // Ends sessions and challenges that were created with the old password.
  await deleteSessions(db, user.id)
  await deleteChallenges(db, user.id)
  const actor = userActor(user, ipAddress)
  await writeUserAudit(db, services, { actor, action: 'user.password-reset', user })
  // The user may have had only an identity provider, and now signs in with a password alone.
  return revokeKeysWithoutTwoFactor(db, services, actor, { userId: user.id })
}

export const newUser = (
  services: Services,
  { email, name, verified }: { email: string; name: string; verified: boolean },
): UserRow => ({
  id: services.ids('usr'),
  name,
  email,
  email_verified: verified ? 1 : 0,
  two_factor_enabled: 0,
  created_at: services.clock(),
  updated_at: services.clock(),
  disabled_at: null,
})

/** An open invitation, for a sign-in that accepts it by its hash. */
export async function readInvitation(services: Services, secret: string) {
  const { purpose, email, workspace } = await readLink(services, secret, undefined)
  if (purpose !== 'join' || !workspace) throw invalidLinkFault()
  return { email, invitation: { hash: hashSecret(secret), slug: workspace.slug } }
}

/** Undefined if it is not an open invitation. Locks its workspace, so that no other request uses it. */
export async function lockInvitation(db: Tx, services: Services, hash: string): Promise<LinkRow | undefined> {
  const find = () => findLink(db, hash, services.clock())
  const found = await find()
  if (found?.purpose !== 'join' || found.workspace_id === null) return undefined
  return (await lockWorkspace(db, found.workspace_id)).archived_at === null ? find() : undefined
}

/** Uses a locked invitation. The role of a user who is a member already does not change. */
export async function acceptLockedInvitation(
  db: Tx,
  services: Services,
  { hash, workspace_id }: LinkRow,
  user: UserRow,
  ipAddress: string,
): Promise<void> {
  const row = await endLink(db, hash, services.clock())
  if (!row) throw invalidLinkFault()
  const joined = await listMemberWorkspaceIds(db, user.id)
  if (!joined.includes(workspace_id ?? '')) await addInvitedMember(db, services, row, user, ipAddress)
}

/** Adds the user to the workspace of an invitation. */
async function addInvitedMember(
  db: Tx,
  services: Services,
  row: LinkRow,
  user: UserRow,
  ipAddress: string,
): Promise<void> {
  if (row.workspace_id === null || row.role === null) throw invalidLinkFault()
  const workspaceId = row.workspace_id
  const isNew = await insertMember(db, {
    workspace_id: workspaceId,
    user_id: user.id,
    role: row.role,
    created_at: services.clock(),
  })
  if (!isNew) throw new Fault('conflict', { message: 'You are already a member of this workspace.' })
  if (row.role === 'owner') await endLinks(db, { workspace_id: workspaceId, email: null }, services.clock())
  await writeAudit(db, services, {
    workspaceId,
    actor: userActor(user, ipAddress),
    action: 'user.joined',
    target: { id: user.id, name: user.name },
    changes: { role: [null, row.role] },
  })
  const data = { member: memberInEvent(user, row.role) }
  await recordEvent(db, services, { workspaceId, type: 'member.joined', data })
}

/** Whether there is an open invitation for the verified address. */
export async function isInvited(db: Tx, services: Services, email: string): Promise<boolean> {
  return (await listOpenInvitationsTo(db, email, services.clock())).length > 0
}

/** Accepts all open invitations of a user whose address was verified without the link. */
export async function acceptOpenInvitations(
  db: Tx,
  services: Services,
  user: UserRow,
  ipAddress: string,
): Promise<void> {
  const joined = await listMemberWorkspaceIds(db, user.id)
  for (const row of await listOpenInvitationsTo(db, user.email, services.clock()))
    if (!joined.includes(row.workspace_id ?? '') && (await useLink(db, services, row)))
      await addInvitedMember(db, services, row, user, ipAddress)
}

async function consumeLink(db: Tx, services: Services, secret: string): Promise<LinkRow> {
  const found = await findLink(db, hashSecret(secret), services.clock())
  const row = found && (await useLink(db, services, found))
  if (!row) throw invalidLinkFault()
  return row
}

/**
 * Undefined if the link was used or its workspace archived meanwhile. Locks the workspace before the link,
 * like other transactions, to prevent deadlocks.
 */
async function useLink(db: Tx, services: Services, { workspace_id, hash }: LinkRow) {
  if (workspace_id !== null && (await lockWorkspace(db, workspace_id)).archived_at !== null) return undefined
  return endLink(db, hash, services.clock())
}

const accountExistsFault = (email: string) =>
  new Fault('conflict', {
    message: `${email} already has an account. Sign in, then open the link again.`,
  })

const invalidLinkFault = () =>
  new Fault('not_found', {
    message: 'This link is invalid, expired or already used. Ask for a new one.',
  })

function requireField(value: string | undefined, name: string): string {
  if (value === undefined) throw invalid(`/body/${name}`, 'is required')
  return value
}
