// Links from invitations and password resets, which work once.
import { readLink, redeemLink } from '../../../domain/accounts/links.ts'
import type { BrowserCaller } from '../../auth/sessions.ts'
import type { Dependencies, HandlerGroup } from './handlers.ts'

export function linkHandlers(deps: Dependencies): HandlerGroup<'links'> {
  const { services, auth, enqueue, signInLimits, findUser } = deps
  const findUserRow = async (caller: BrowserCaller) => (await findUser(caller))?.user

  return {
    'links.read': async (caller, { link }) => readLink(services, link, await findUserRow(caller)),
    'links.redeem': async (caller, input) => {
      const { browser, respond } = caller
      const { address } = browser
      const user = await findUserRow(caller)
      // Queued as one: the sign-in must not be rejected after the link was consumed.
      const signedIn = await enqueue(address, async () => {
        const credentials = await redeemLink(
          services,
          { ...input, ipAddress: address },
          user,
          auth.hashPassword,
        )
        return credentials && auth.signIn(browser, credentials.email, credentials.password)
      })
      if (!signedIn) return { next: 'signed_in' as const }
      return respond(await signInLimits.markKnown(browser, signedIn))
    },
  }
}
