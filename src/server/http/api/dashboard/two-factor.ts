// Two-factor authentication (TOTP) of the user's own account.
import { revokeKeysWithoutTwoFactor } from '../../../domain/keys/personal.ts'
import { awaitPropagation } from '../../../verification/propagation.ts'
import type { Confirmations } from './confirmation.ts'
import { type Dependencies, DONE, type HandlerGroup } from './handlers.ts'

export const twoFactorHandlers = ({
  services,
  auth,
  updateWithPassword,
  updateWithCode,
}: Dependencies & Confirmations): HandlerGroup<'two-factor'> => ({
  'two-factor.begin': (caller, { password }) =>
    updateWithPassword(caller, password, 'user.two-factor-started', (db) =>
      auth.beginTwoFactor(db, caller.user.id),
    ),
  'two-factor.confirm': async (caller, { code }) => {
    const { user, browser, respond } = caller
    const cookie = await updateWithCode(caller, 'user.two-factor-enabled', (db) =>
      auth.confirmTwoFactor(db, browser, user.id, code.replaceAll(' ', '')),
    )
    return respond({ result: DONE, cookies: [cookie] })
  },
  'two-factor.disable': async (caller, { password }) => {
    const { user, actor, browser, respond } = caller
    const ids = { userId: user.id, sessionId: actor.session?.id as string }
    const action = 'user.two-factor-disabled'
    const { cookie, change } = await updateWithPassword(caller, password, action, async (db) => ({
      cookie: await auth.disableTwoFactor(db, browser, ids),
      change: await revokeKeysWithoutTwoFactor(db, services, actor, { userId: user.id }),
    }))
    await awaitPropagation(services, change)
    return respond({ result: DONE, cookies: [cookie] })
  },
})
