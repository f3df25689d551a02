// Two-factor authentication (TOTP) of the user's own account.
import { Fault } from '../../../domain/fault.ts'
import type { Confirmations } from './confirmation.ts'
import { type Dependencies, DONE, type HandlerGroup } from './handlers.ts'

export function twoFactorHandlers({
  auth,
  update,
}: Dependencies & Confirmations): HandlerGroup<'two-factor'> {
  return {
    'two-factor.begin': async (caller, { password }) => {
      if (caller.user.two_factor_enabled === 1)
        throw new Fault('conflict', {
          message: 'Two-factor authentication is already on. Turn it off first.',
        })
      const { beginTwoFactor } = await auth()
      return update(caller, { action: 'user.two-factor-started', proof: 'password' }, (db) =>
        beginTwoFactor(db, caller.browser, password),
      )
    },
    'two-factor.confirm': async (caller, { code }) => {
      const { confirmTwoFactor } = await auth()
      return update(caller, { action: 'user.two-factor-enabled', proof: 'code' }, async (db) => ({
        result: DONE,
        cookies: await confirmTwoFactor(db, caller.browser, {
          userId: caller.user.id,
          sessionId: caller.actor.session?.id as string,
          code: code.replaceAll(' ', ''),
        }),
      }))
    },
    'two-factor.disable': async (caller, { password }) => {
      const { disableTwoFactor } = await auth()
      return update(caller, { action: 'user.two-factor-disabled', proof: 'password' }, async (db) => ({
        result: DONE,
        cookies: await disableTwoFactor(db, caller.browser, password),
      }))
    },
  }
}
