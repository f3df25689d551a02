// Two-factor authentication (TOTP) of the user's own account.
import type { Confirmations } from './confirmation.ts'
import { type Dependencies, DONE, type HandlerGroup } from './handlers.ts'

export const twoFactorHandlers = ({
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
    const cookie = await updateWithPassword(caller, password, 'user.two-factor-disabled', (db) =>
      auth.disableTwoFactor(db, browser, ids),
    )
    return respond({ result: DONE, cookies: [cookie] })
  },
})
