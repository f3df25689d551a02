// Operations on the user's own account that ask for the password or a code again.
import { recordFailedConfirmation, requireSamePassword } from '../../../domain/accounts/sign-ins.ts'
import { updateOwnAccount } from '../../../domain/accounts/users.ts'
import { Fault } from '../../../domain/fault.ts'
import type { UserCaller } from '../../auth/sessions.ts'
import { perAccount } from '../../limits/sign-in-limits.ts'
import type { Dependencies } from './handlers.ts'

type Proof = 'password' | 'code'
type AuditAction = Parameters<typeof updateOwnAccount>[2]
type Act<T> = (db: Parameters<typeof requireSamePassword>[0]) => Promise<T>

export type Confirmations = ReturnType<typeof confirmations>

export function confirmations({ services, auth, throttle, enqueue }: Dependencies) {
  /** Records in the audit log that the password or code was wrong. */
  const confirm = <T>({ actor }: UserCaller, proof: Proof, act: () => Promise<T>): Promise<T> =>
    act().catch(async (error) => {
      if (error instanceof Fault && error.code === 'forbidden')
        await recordFailedConfirmation(services, actor, proof)
      throw error
    })

  /** The password is verified before the transaction, which would stay open while it is hashed. */
  async function updateWithPassword<T>(
    caller: UserCaller,
    password: string,
    action: AuditAction,
    act: Act<T>,
  ): Promise<T> {
    const { user, actor, browser } = caller
    await throttle.consume(perAccount(user.id))
    const before = await confirm(caller, 'password', () =>
      enqueue(browser.address, () => auth.requirePassword(user.id, password)),
    )
    return updateOwnAccount(services, actor, action, async (db) => {
      await requireSamePassword(db, user.id, before)
      return act(db)
    })
  }

  /** `act` verifies the code. */
  async function updateWithCode<T>(caller: UserCaller, action: AuditAction, act: Act<T>): Promise<T> {
    await throttle.consume(perAccount(caller.user.id))
    return confirm(caller, 'code', () => updateOwnAccount(services, caller.actor, action, act))
  }

  return { confirm, updateWithPassword, updateWithCode }
}
