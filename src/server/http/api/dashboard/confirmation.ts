// Operations on the user's own account that ask for the password or a code again.
import type { WithCookies } from '../../../auth/better-auth.ts'
import { recordFailedConfirmation } from '../../../domain/accounts/sign-ins.ts'
import { updateOwnAccount } from '../../../domain/accounts/users.ts'
import { Fault } from '../../../domain/fault.ts'
import type { UserCaller } from '../../auth/sessions.ts'
import { perAccount } from '../../auth/sign-in-limits.ts'
import type { Dependencies } from './handlers.ts'

type Proof = 'password' | 'code'
type AuditAction = Parameters<typeof updateOwnAccount>[2]
type Tx = Parameters<Parameters<typeof updateOwnAccount>[3]>[0]

export type Confirmations = ReturnType<typeof confirmations>

export function confirmations({ services, throttle, enqueue }: Dependencies) {
  /** Records in the audit log that the password or code was wrong. */
  const confirm = <T>({ actor }: UserCaller, proof: Proof, act: () => Promise<T>): Promise<T> =>
    act().catch(async (error) => {
      if (error instanceof Fault && error.code === 'forbidden')
        await recordFailedConfirmation(services, actor, proof)
      throw error
    })

  /** Updates the user's own account through better-auth, with its audit entry in the same transaction. */
  async function update<T>(
    user: UserCaller,
    { action, proof }: { action: AuditAction; proof: Proof },
    act: (db: Tx) => Promise<WithCookies<T>>,
  ): Promise<T> {
    // Each attempt counts: a password is hashed, slowly on purpose, while the transaction is open.
    await throttle.consume(perAccount(user.user.id))
    const updated = await confirm(user, proof, () =>
      enqueue(user.browser.address, () => updateOwnAccount(services, user.actor, action, act)),
    )
    return user.respond(updated)
  }

  return { confirm, update }
}
