// Signing in: by password, by two-factor code, by single sign-on; and resetting a forgotten password.

import { linkUrl } from '../../../domain/accounts/links.ts'
import * as accounts from '../../../domain/accounts/users.ts'
import { Fault } from '../../../domain/fault.ts'
import { perMail, perNetwork, perSignedIn } from '../../limits/sign-in-limits.ts'
import { basePath } from '../../server/paths.ts'
import { resetEmail } from './emails.ts'
import type { Dependencies, HandlerGroup } from './handlers.ts'

export function signInHandlers(deps: Dependencies): HandlerGroup<'sign-in'> {
  const {
    services,
    baseUrl,
    publicUrl,
    auth,
    sso,
    sendMail,
    throttle,
    enqueue,
    signInLimits,
    findUser,
    log,
  } = deps

  async function mailResetLink(email: string, from: string): Promise<void> {
    const user = await accounts.findByEmail(services, email)
    const link = user && (await accounts.createMailedResetLink(services, user, from))
    if (link && sendMail) await sendMail(resetEmail(user.email, linkUrl(publicUrl(), link.secret)))
  }

  return {
    'sign-in.options': async (caller) => ({
      sso: sso?.host ?? null,
      resetByMail: sendMail !== undefined,
      isSignedIn: (await findUser(caller)) !== undefined,
    }),
    'sign-in.password': async ({ browser, respond }, { email, password }) => {
      const limits = await signInLimits.limitsFor(browser, email)
      const signedIn = await throttle.attempt(
        limits,
        () => enqueue(browser.address, () => auth.signIn(browser, email, password)),
        perSignedIn(email),
      )
      return respond(await signInLimits.markKnown(browser, signedIn))
    },
    'sign-in.code': async ({ browser, respond }, { code }) => {
      const limits = perNetwork('code', browser.address, 20)
      const signedIn = await throttle.attempt(limits, () => auth.signInWithCode(browser, code))
      return respond(await signInLimits.markKnown(browser, signedIn))
    },
    'sign-in.sso': async ({ browser, respond }, { link }) => {
      if (!sso) throw new Fault('not_found')
      await throttle.consume(perNetwork('sso', browser.address, 60))
      return respond(await (await sso.open()).begin(link))
    },
    'sign-in.return': async ({ browser, respond }, query) => {
      if (!sso) throw new Fault('not_found')
      await throttle.consume(perNetwork('sso-return', browser.address, 60))
      const { failure, workspace } = respond(
        await (await sso.open()).finish(browser, query as Record<string, string>),
      )
      const path = basePath(baseUrl)
      if (failure) return { location: `${path}/sign-in?error=${failure}` }
      return { location: workspace === undefined ? `${path}/` : `${path}/w/${workspace}?joined` }
    },
    'sign-in.request-reset': async ({ browser }, { email }) => {
      if (!sendMail) throw new Fault('not_found')
      // Counted for unknown addresses too. The daily limit is in the database and skips the email silently:
      // an error would reveal that the address has an account.
      await throttle.consume(perMail(email, browser.address))
      // Not awaited: the response time would reveal whether the address has an account.
      void mailResetLink(email, browser.address).catch((error) =>
        log.error({ err: error }, 'failed to send password reset email'),
      )
      return { asked: true as const }
    },
  }
}
