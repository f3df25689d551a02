// Bookkeeping of sign-ins: audit entries, session limits, used codes.
import { hashSecret } from '../../../lib/credentials/secret.ts'
import { DAY_MS } from '../../../lib/time.ts'
import { lockPassword } from '../../store/accounts/passwords.ts'
import { dropSessionsBeyond } from '../../store/accounts/sessions.ts'
import { useCode } from '../../store/accounts/two-factors.ts'
import type { UserRow } from '../../store/accounts/users.ts'
import type { Tx } from '../../store/engine/store.ts'
import { type AuditDetail, writeAuthFailure, writeUserAudit } from '../audit/entries.ts'
import type { Services, UserActor } from '../context.ts'
import { Fault } from '../fault.ts'

export const WRONG_CREDENTIALS = 'Incorrect email address or password.'

/** Per user; the oldest are deleted first. */
const SESSIONS_MAX = 50
/**
 * How long used TOTP codes are stored. They are valid for less than 2 minutes; the rest is for clocks that
 * were ahead: without it, a code that was used before would be valid again when the clock is set back.
 */
export const USED_CODES_MS = DAY_MS

/** Method and client IP address of a sign-in. */
export interface SignIn {
  method: 'password' | 'code' | 'recovery-code' | 'sso'
  address: string
}

/** A user without a session: one who is signing in, or who uses a link. */
export const userActor = ({ id, name }: UserRow, address: string): UserActor => ({
  kind: 'user',
  id,
  name,
  address,
})

/** Runs in the transaction that created the session. */
export async function recordSignIn(db: Tx, services: Services, user: UserRow, signIn: SignIn): Promise<void> {
  await dropSessionsBeyond(db, user.id, SESSIONS_MAX)
  const actor = userActor(user, signIn.address)
  await writeUserAudit(db, services, { actor, action: 'user.signed-in', user, detail: signIn.method })
}

/** A failed sign-in to an existing account. */
export async function recordFailedSignIn(
  db: Tx,
  services: Services,
  { user, detail, address }: { user: UserRow; detail: AuditDetail; address: string },
): Promise<void> {
  const actor = { kind: 'anonymous', id: address } as const
  const reason = user.disabled_at === null ? detail : 'disabled'
  await writeAuthFailure(db, services, { actor, action: 'user.sign-in-failed', user, detail: reason })
}

/** A signed-in user failed to confirm an action with the password or a code. */
export const recordFailedConfirmation = (
  services: Services,
  actor: UserActor,
  detail: 'password' | 'code',
): Promise<void> =>
  services.store.transaction((db) =>
    writeAuthFailure(db, services, { actor, action: 'user.confirmation-failed', user: actor, detail }),
  )

/** `before` is the hash that the password was verified against. Locks it. */
export async function requireSamePassword(db: Tx, userId: string, before: string): Promise<void> {
  if ((await lockPassword(db, userId)) !== before)
    throw new Fault('conflict', { message: 'The password was changed by another request. Try again.' })
}

/** Marks a code as used, so that an observed code cannot be replayed. Returns false if it was used before. */
export function consumeCode(db: Tx, services: Services, userId: string, code: string): Promise<boolean> {
  const at = services.clock()
  return useCode(db, { userId, hash: hashSecret(code), at, deleteBefore: at - USED_CODES_MS })
}
