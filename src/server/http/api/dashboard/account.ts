// The user's own account: its session, name, password and other sessions.

import { requireGoodPassword } from '../../../domain/accounts/passwords.ts'
import * as accounts from '../../../domain/accounts/users.ts'
import { perAccount } from '../../limits/sign-in-limits.ts'
import type { Confirmations } from './confirmation.ts'
import { type Dependencies, DONE, type HandlerGroup } from './handlers.ts'

export function accountHandlers({
  services,
  auth,
  sso,
  throttle,
  enqueue,
  confirm,
}: Dependencies & Confirmations): HandlerGroup<'session' | 'account'> {
  return {
    'session.read': ({ user }) => accounts.describeSelf(services, user),
    'session.end': async ({ actor, respond }) => {
      const encrypted = (await accounts.signOut(services, actor))?.id_token
      const providerUrl =
        sso && encrypted ? await (await sso.open()).signOutUrl(auth.decryptIdToken(encrypted)) : null
      return respond({ result: { ...DONE, providerUrl }, cookies: [auth.clearSession] })
    },
    'session.end-all': async ({ actor }) => {
      await accounts.signOutEverywhere(services, actor)
      return DONE
    },
    'account.rename': async ({ actor }, { name }) => {
      await accounts.rename(services, actor, name)
      return DONE
    },
    'account.password': async (caller, { current, password }) => {
      const { user, actor, browser } = caller
      await throttle.consume(perAccount(user.id))
      await requireGoodPassword(password, user.email)
      const hashes = await confirm(caller, 'password', () =>
        enqueue(browser.address, async () => ({
          before: await auth.requirePassword(user.id, current),
          hashed: await auth.hashPassword(password),
        })),
      )
      await accounts.changePassword(services, actor, user, hashes)
      return DONE
    },
    'account.sessions': ({ actor }) => accounts.readSessions(services, actor),
    'account.end-session': async ({ actor }, { id }) => {
      await accounts.endSession(services, actor, id)
      return DONE
    },
  }
}
