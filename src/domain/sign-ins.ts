// What follows once somebody has proven, or failed to prove, who they are.
import { hashSecret } from '../credentials/secret.ts'
import { lockPassword } from '../store/passwords.ts'
import { deleteChallenges, deleteSessions, dropSessionsBeyond, useCode } from '../store/sessions.ts'
import type { Tx } from '../store/store.ts'
import { findUser, type UserRow } from '../store/users.ts'
import { type Detail, writeAuthFailure, writeUserAudit } from './audit.ts'
import type { Services, UserActor } from './context.ts'
import { Fault } from './fault.ts'

export const WRONG_CREDENTIALS = 'The e-mail address or the password is wrong.'

/** Of one person; the oldest goes first. */
const SESSIONS_MAX = 50
/** An authenticator's code is taken a step early or late: that long it must not be taken twice. */
const CODE_MS = 3 * 60 * 1000

/** How somebody has signed in, and from where. */
export interface SignIn {
  method: 'password' | 'code' | 'recovery-code' | 'sso'
  address: string
}

/** As a part of the transaction that made the session. Also deletes expired sessions. */
export async function recordSignIn(db: Tx, services: Services, user: UserRow, signIn: SignIn): Promise<void> {
  await dropSessionsBeyond(db, user.id, SESSIONS_MAX, services.clock())
  const { id, name } = user
  const actor: UserActor = { kind: 'person', id, name, address: signIn.address }
  await writeUserAudit(db, services, {
    actor,
    action: 'person.signed-in',
    person: user,
    detail: signIn.method,
  })
}

/** Somebody who tried to sign in as a person of ours, and failed. */
export async function recordFailedSignIn(
  db: Tx,
  services: Services,
  { user, detail, address }: { user: UserRow; detail: Detail; address: string },
): Promise<void> {
  const actor = { kind: 'visitor', id: address } as const
  const reason = user.disabled_at === null ? detail : 'disabled'
  await writeAuthFailure(db, services, {
    actor,
    action: 'person.sign-in-failed',
    person: user,
    detail: reason,
  })
}

/** Somebody who is signed in and was asked for the password or a code once more. */
export const recordFailedConfirmation = (
  services: Services,
  actor: UserActor,
  detail: 'password' | 'code',
): Promise<void> =>
  services.store.transaction((db) =>
    writeAuthFailure(db, services, { actor, action: 'person.confirmation-failed', person: actor, detail }),
  )

/**
 * After a password was found right and a session made: both must belong together. A password that was changed, or a person
 * who was revoked, in between leaves nothing behind that the old password opened. `signIn` is absent where a code is owed.
 */
export async function requireSamePassword(
  services: Services,
  userId: string,
  before: string | undefined,
  signIn: SignIn | undefined,
): Promise<void> {
  const isSame = await services.store.transaction(async (db) => {
    const isHeld = before !== undefined && (await lockPassword(db, userId)) === before
    const user = await findUser(db, userId)
    if (isHeld && user?.disabled_at === null) {
      if (signIn) await recordSignIn(db, services, user, signIn)
      return true
    }
    // Whoever is in with the new password signs in once more: better than somebody with the old one staying.
    await deleteSessions(db, userId)
    await deleteChallenges(db, userId)
    return false
  })
  if (!isSame) throw new Fault('unauthorized', { message: WRONG_CREDENTIALS })
}

/** Whoever saw a code over somebody's shoulder must not use it again. False where it was used before. */
export function takeCode(db: Tx, services: Services, userId: string, code: string): Promise<boolean> {
  const at = services.clock()
  return useCode(db, { userId, hash: hashSecret(code), at, deleteBefore: at - CODE_MS })
}
