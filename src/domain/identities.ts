// Who may sign in by an identity provider, and as whom. Accounts are linked by issuer and subject; an address alone opens
// none, because addresses are reassigned and not every provider proves them.
import { cleanText } from '../contract/text.ts'
import { findUserByIdentity, hasIdentity, insertIdentity } from '../store/identities.ts'
import type { Tx } from '../store/store.ts'
import { findUserByEmail, insertUser, lockUser, type UserRow } from '../store/users.ts'
import { writeUserAudit } from './audit.ts'
import type { Services } from './context.ts'
import { Fault } from './fault.ts'
import { isInvited, joinAsInvited, newUser } from './links.ts'
import { recordFailedSignIn, recordSignIn } from './sign-ins.ts'

/** What the provider has proven of somebody. */
export interface Proven {
  issuer: string
  subject: string
  /** In lower case. */
  email: string | undefined
  emailVerified: boolean
  name: string
}

export type SsoRefusal = 'not_invited' | 'email_unverified' | 'account_exists' | 'disabled'

type Admission = { user: UserRow; refusal?: undefined } | { user: UserRow | undefined; refusal: SsoRefusal }

interface Policy {
  /** Whether an existing account is linked to a subject that proves its address. */
  linkByEmail: boolean
  /** The IP address of the browser. */
  address: string
}

/** As a part of the transaction that makes the session. */
export async function admitIdentity(
  db: Tx,
  services: Services,
  proven: Proven,
  policy: Policy,
): Promise<Admission> {
  const admission = await findAccount(db, services, proven, policy)
  if (admission.refusal !== undefined) return admission
  // Locked, so that a user who is disabled at the same time keeps no session.
  const user = await lockUser(db, admission.user.id)
  if (!user || user.disabled_at !== null) return { user, refusal: 'disabled' }
  if (proven.emailVerified && proven.email === user.email)
    await joinAsInvited(db, services, user, policy.address)
  await recordSignIn(db, services, user, { method: 'sso', address: policy.address })
  return { user }
}

async function findAccount(db: Tx, services: Services, proven: Proven, policy: Policy): Promise<Admission> {
  const { issuer, subject, email } = proven
  const linked = await findUserByIdentity(db, issuer, subject)
  if (linked) return { user: linked }
  const user = email === undefined ? undefined : await findUserByEmail(db, email)
  if (email === undefined || !proven.emailVerified) return { user, refusal: 'email_unverified' }
  if (user) return linkExisting(db, services, user, proven, policy)
  if (!(await isInvited(db, services, email))) {
    // A concurrent sign-in may have used the invitation, and linked the subject, since it was looked up.
    const linkedNow = await findUserByIdentity(db, issuer, subject)
    return linkedNow ? { user: linkedNow } : { user, refusal: 'not_invited' }
  }
  const created = newUser(services, { email, name: plainName(proven.name, email), verified: true })
  // A concurrent sign-in created the user in the meantime.
  if (!(await insertUser(db, created))) return findAccount(db, services, proven, policy)
  await link(db, services, created, proven)
  return { user: created }
}

/** Only where both sides have proven the address, and the account has no other subject of that issuer. */
async function linkExisting(
  db: Tx,
  services: Services,
  found: UserRow,
  proven: Proven,
  { linkByEmail, address }: Policy,
): Promise<Admission> {
  // Locked, so that what is decided on stays true, and two subjects are not both linked at the same time.
  const user = await lockUser(db, found.id)
  const linked = await findUserByIdentity(db, proven.issuer, proven.subject)
  if (linked) return { user: linked }
  const isProven = user?.email_verified === 1 && user.email === proven.email
  if (!linkByEmail || !isProven || (await hasIdentity(db, proven.issuer, user.id)))
    return { user, refusal: 'account_exists' }
  if (user.disabled_at !== null) return { user, refusal: 'disabled' }
  await link(db, services, user, proven)
  const actor = { kind: 'person', id: user.id, name: user.name, address } as const
  await writeUserAudit(db, services, { actor, action: 'person.identity-linked', person: user })
  return { user }
}

async function link(db: Tx, services: Services, user: UserRow, { issuer, subject }: Proven): Promise<void> {
  const identity = { id: services.ids('idn'), userId: user.id, issuer, subject, at: services.clock() }
  if (await insertIdentity(db, identity)) return
  // A concurrent sign-in has linked the subject to another account; this transaction is undone.
  throw new Fault('conflict', { message: 'You are signing in twice at the same time. Try again.' })
}

const REASONS = {
  account_exists: 'sso-not-linked',
  email_unverified: 'sso-email-unverified',
  disabled: 'disabled',
  not_invited: undefined,
} as const

/** In the log of the account that the attempt was about, if there is one. */
export async function recordRefusal(
  db: Tx,
  services: Services,
  { user, refusal, address }: { user: UserRow | undefined; refusal: SsoRefusal; address: string },
): Promise<void> {
  const detail = REASONS[refusal]
  if (user && detail) await recordFailedSignIn(db, services, { user, detail, address })
}

/** The provider's name of a person, made one that is accepted here. */
const plainName = (name: string, email: string) => cleanText(name, 80) || (email.split('@', 1)[0] as string)
