// Maps identities of an identity provider to accounts. Accounts are linked by issuer and subject; an email
// address alone does not match, because addresses are reassigned and not every provider verifies them.
import { TEXT_CHARS_MAX } from '../../../contract/limits.ts'
import { cleanText } from '../../../contract/text.ts'
import { findUserByIdentity, hasIdentity, insertIdentity } from '../../store/accounts/identities.ts'
import type { LinkRow } from '../../store/accounts/links.ts'
import { findUserByEmail, insertUser, lockUser, type UserRow } from '../../store/accounts/users.ts'
import type { Tx } from '../../store/engine/store.ts'
import { writeUserAudit } from '../audit/entries.ts'
import type { Services } from '../context.ts'
import { Fault } from '../fault.ts'
import { acceptLockedInvitation, acceptOpenInvitations, isInvited, lockInvitation, newUser } from './links.ts'
import { recordFailedSignIn, recordSignIn, userActor } from './sign-ins.ts'

/** An identity that the provider has verified. */
export interface VerifiedIdentity {
  issuer: string
  subject: string
  /** Lower case. */
  email: string | undefined
  emailVerified: boolean
  name: string
}

export type SsoRejection =
  | 'not_invited'
  | 'email_unverified'
  | 'account_exists'
  | 'disabled'
  | 'invalid_invitation'
  | 'wrong_email'

type Admission =
  | { user: UserRow; rejection?: undefined }
  | { user: UserRow | undefined; rejection: SsoRejection }

interface Policy {
  /** Whether to link an existing account to a subject with the same verified address. */
  linkByEmail: boolean
  /** Client IP address. */
  address: string
  /** Hash of the invitation that the sign-in accepts, if it was started from one. */
  invitation?: string | undefined
}

/** Runs in the transaction that creates the session. */
export async function admitIdentity(
  db: Tx,
  services: Services,
  identity: VerifiedIdentity,
  policy: Policy,
): Promise<Admission> {
  const { invitation, rejection } = await lockInvitationFor(db, services, identity, policy)
  if (rejection !== undefined) return { user: undefined, rejection }
  const admission = await findAccount(db, services, identity, { ...policy, isInvited: !!invitation })
  if (admission.rejection !== undefined) return admission
  // Locked, so that a user who is disabled concurrently keeps no session.
  const user = await lockUser(db, admission.user.id)
  if (!user || user.disabled_at !== null) return { user, rejection: 'disabled' }
  if (invitation) await acceptLockedInvitation(db, services, invitation, user, policy.address)
  if (identity.emailVerified && identity.email === user.email)
    await acceptOpenInvitations(db, services, user, policy.address)
  await recordSignIn(db, services, user, { method: 'sso', address: policy.address })
  return { user }
}

/** Only a user with the verified address of the invitation may accept it. A setup link has no address. */
async function lockInvitationFor(
  db: Tx,
  services: Services,
  { email, emailVerified }: VerifiedIdentity,
  { invitation: hash }: Policy,
): Promise<{ invitation?: LinkRow; rejection?: SsoRejection }> {
  if (hash === undefined) return {}
  const invitation = await lockInvitation(db, services, hash)
  if (!invitation) return { rejection: 'invalid_invitation' }
  if (!emailVerified) return { rejection: 'email_unverified' }
  if (invitation.email !== null && invitation.email !== email) return { rejection: 'wrong_email' }
  return { invitation }
}

async function findAccount(
  db: Tx,
  services: Services,
  identity: VerifiedIdentity,
  policy: Policy & { isInvited: boolean },
): Promise<Admission> {
  const { issuer, subject, email } = identity
  const linked = await findUserByIdentity(db, issuer, subject)
  if (linked) return { user: linked }
  const user = email === undefined ? undefined : await findUserByEmail(db, email)
  if (email === undefined || !identity.emailVerified) return { user, rejection: 'email_unverified' }
  if (user) return linkExisting(db, services, user, identity, policy)
  if (!policy.isInvited && !(await isInvited(db, services, email))) {
    // A concurrent sign-in may have used the invitation and linked the subject meanwhile.
    const linkedNow = await findUserByIdentity(db, issuer, subject)
    return linkedNow ? { user: linkedNow } : { user, rejection: 'not_invited' }
  }
  const created = newUser(services, { email, name: displayName(identity.name, email), verified: true })
  // A concurrent sign-in has created the user.
  if (!(await insertUser(db, created))) return findAccount(db, services, identity, policy)
  await link(db, services, created, identity)
  return { user: created }
}

/** Links only if both sides have verified the address, and the account has no other subject of the issuer. */
async function linkExisting(
  db: Tx,
  services: Services,
  found: UserRow,
  identity: VerifiedIdentity,
  { linkByEmail, address }: Policy,
): Promise<Admission> {
  // Locked, so that the checks below hold until the commit, and only one of two concurrent subjects is
  // linked.
  const user = await lockUser(db, found.id)
  const linked = await findUserByIdentity(db, identity.issuer, identity.subject)
  if (linked) return { user: linked }
  const isVerified = user?.email_verified === 1 && user.email === identity.email
  if (!linkByEmail || !isVerified || (await hasIdentity(db, identity.issuer, user.id)))
    return { user, rejection: 'account_exists' }
  if (user.disabled_at !== null) return { user, rejection: 'disabled' }
  await link(db, services, user, identity)
  await writeUserAudit(db, services, {
    actor: userActor(user, address),
    action: 'user.identity-linked',
    user,
  })
  return { user }
}

async function link(
  db: Tx,
  services: Services,
  user: UserRow,
  { issuer, subject }: VerifiedIdentity,
): Promise<void> {
  const row = { id: services.ids('idn'), userId: user.id, issuer, subject, at: services.clock() }
  if (await insertIdentity(db, row)) return
  // A concurrent sign-in has linked the subject to another account; this transaction is rolled back.
  throw new Fault('conflict', { message: 'Another sign-in with this identity is in progress. Try again.' })
}

const REASONS = {
  account_exists: 'sso-not-linked',
  email_unverified: 'sso-email-unverified',
  disabled: 'disabled',
  not_invited: undefined,
  invalid_invitation: undefined,
  wrong_email: undefined,
} as const

/** Writes to the audit log of the account, if there is one. */
export async function recordRejection(
  db: Tx,
  services: Services,
  { user, rejection, address }: { user: UserRow | undefined; rejection: SsoRejection; address: string },
): Promise<void> {
  const detail = REASONS[rejection]
  if (user && detail) await recordFailedSignIn(db, services, { user, detail, address })
}

/** The provider's display name, sanitized; or the local part of the address. */
const displayName = (name: string, email: string) =>
  cleanText(name, TEXT_CHARS_MAX) || (email.split('@', 1)[0] as string)
