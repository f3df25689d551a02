// The dashboard's side: /dashboard/api. People who are signed in, from our own page, and nobody else.
import type { FastifyInstance } from 'fastify'
import type { Auth, WithCookies } from '../../auth/auth.ts'
import type { Sso } from '../../auth/sso.ts'
import { DASHBOARD_PREFIX, dashboardOperations } from '../../contract/dashboard/index.ts'
import { dashboardInfo } from '../../contract/description.ts'
import { describe } from '../../contract/openapi.ts'
import type { Variant } from '../../contract/variants.ts'
import * as accounts from '../../domain/accounts.ts'
import { readAudit } from '../../domain/audit.ts'
import type { Services } from '../../domain/context.ts'
import { findActiveEdgeName } from '../../domain/edges.ts'
import { Fault } from '../../domain/fault.ts'
import * as keys from '../../domain/keys.ts'
import { applyLink, linkAddress, readLink } from '../../domain/links.ts'
import * as members from '../../domain/members.ts'
import { requireGoodPassword } from '../../domain/passwords.ts'
import { recordFailedConfirmation } from '../../domain/sign-ins.ts'
import { readUsage } from '../../domain/usage.ts'
import { readWorkspace } from '../../domain/workspaces.ts'
import { requireNavigation, requireSameOrigin } from '../auth/csrf.ts'
import type { KnownBrowsers } from '../auth/known-browser.ts'
import { createLoginThrottle } from '../auth/login-throttle.ts'
import { createPasswordQueue } from '../auth/password-queue.ts'
import { type Callers, createPeople, type Person, type Visitor } from '../auth/sessions.ts'
import { createSignInLimits, perAccount, perMail, perNetwork } from '../auth/sign-in-limits.ts'
import { type Handlers, registerOperations } from '../operations/routes.ts'
import { type Email, invitationEmail, resetEmail } from './emails.ts'

export interface DashboardOptions {
  services: Services
  variant: Variant
  /** Where people reach the server; undefined means where it listens. */
  baseUrl: string | undefined
  /** Where links lead. */
  address: () => string
  /** Loaded when first asked for. */
  auth: () => Promise<Auth>
  sso: { host: string; open: () => Promise<Sso> } | undefined
  knownBrowsers: KnownBrowsers
  sendMail: ((letter: Email) => Promise<void>) | undefined
}

const DONE = { done: true } as const

export function registerDashboardApi(server: FastifyInstance, options: DashboardOptions): void {
  const { services, variant, baseUrl, address, auth, sso, knownBrowsers, sendMail } = options
  const { attempt, consume } = createLoginThrottle(services.clock)
  const inTurn = createPasswordQueue()
  const signIns = createSignInLimits(services, knownBrowsers, auth)
  const { admit, findSignedIn } = createPeople(services, auth)
  const document = describeDashboard(baseUrl)

  const openerOf = async (visitor: Visitor) => (await findSignedIn(visitor))?.user

  /** Does something to one's own account that better-auth carries out, and writes it down with it. */
  async function change<T>(
    person: Person,
    action: Parameters<typeof accounts.updateOwnAccount>[2],
    act: (db: Parameters<Parameters<typeof accounts.updateOwnAccount>[3]>[0]) => Promise<WithCookies<T>>,
  ): Promise<T> {
    // Whatever comes of it: a password is checked, slowly on purpose, while the transaction is open.
    consume(perAccount(person.user.id))
    let done: WithCookies<T> | undefined
    const given = action === 'person.second-factor-added' ? 'code' : 'password'
    await confirming(person, given, () =>
      inTurn(person.browser.address, () =>
        accounts.updateOwnAccount(services, person.actor, action, async (db) => {
          done = await act(db)
        }),
      ),
    )
    return person.answer(done as WithCookies<T>)
  }

  /** Records where the password or code that was asked for once more is wrong. */
  const confirming = <T>({ actor }: Person, given: 'password' | 'code', act: () => Promise<T>): Promise<T> =>
    act().catch(async (error) => {
      if (error instanceof Fault && error.code === 'forbidden')
        await recordFailedConfirmation(services, actor, given)
      throw error
    })

  const handlers: Handlers<Callers, (typeof dashboardOperations)[number]> = {
    'sign-in.options': () => ({ sso: sso?.host ?? null, resetByMail: sendMail !== undefined }),
    'sign-in.password': async ({ browser, answer }, { email, password }) => {
      const { signIn } = await auth()
      const limits = await signIns.limitsOf(browser, email)
      const signed = await attempt(limits, () =>
        inTurn(browser.address, () => signIn(browser, email, password)),
      )
      return answer(await signIns.markKnown(browser, signed))
    },
    'sign-in.code': async ({ browser, answer }, { code }) => {
      const { giveCode } = await auth()
      const signed = await attempt(perNetwork('code', browser.address, 20), () => giveCode(browser, code))
      return answer(await signIns.markKnown(browser, signed))
    },
    'sign-in.sso': async ({ browser, answer }) => {
      if (!sso) throw new Fault('not_found')
      consume(perNetwork('sso', browser.address, 60))
      return answer(await (await sso.open()).begin())
    },
    'sign-in.return': async ({ browser, answer }, query) => {
      if (!sso) throw new Fault('not_found')
      consume(perNetwork('sso-return', browser.address, 60))
      const { failure } = answer(await (await sso.open()).finish(browser, query as Record<string, string>))
      const path = baseUrl ? new URL(baseUrl).pathname.replace(/\/$/, '') : ''
      return { location: failure ? `${path}/sign-in?error=${failure}` : `${path}/` }
    },
    'sign-in.forgotten': async ({ browser }, { email }) => {
      if (!sendMail) throw new Fault('not_found')
      // Each counts, whether the address is known or not. What a day allows is counted in the database, and an address
      // that is over it gets no mail: to say so would tell that it is known.
      consume(perMail(email, browser.address))
      // Not waited for: how long it takes would tell whether the address is known.
      void mailResetLink(email).catch((error) => server.log.error({ err: error }, 'could not send mail'))
      return { asked: true as const }
    },
    'links.read': async (visitor, { link }) => readLink(services, link, await openerOf(visitor)),
    'links.use': async (visitor, given) => {
      const { hashPassword, signIn } = await auth()
      const { address } = visitor.browser
      const opener = await openerOf(visitor)
      // One turn for both: a link that was used up must not be followed by a refusal.
      const signed = await inTurn(address, async () => {
        const credentials = await applyLink(services, { ...given, address }, opener, hashPassword)
        return credentials && signIn(visitor.browser, credentials.email, credentials.password)
      })
      if (!signed) return { next: 'signed_in' as const }
      return visitor.answer(await signIns.markKnown(visitor.browser, signed))
    },

    'session.read': ({ user }) => accounts.describeSelf(services, user),
    'session.end': async ({ actor, browser, answer }) => {
      const { signOut } = await auth()
      let cookies: string[] = []
      await accounts.updateOwnAccount(services, actor, 'person.signed-out', async (db) => {
        cookies = await signOut(db, browser)
      })
      return answer({ result: DONE, cookies })
    },
    'session.end-all': async ({ actor }) => {
      await accounts.signOutEverywhere(services, actor)
      return DONE
    },
    'account.rename': async ({ actor }, { name }) => {
      await accounts.rename(services, actor, name)
      return DONE
    },
    'account.password': async (person, { current, password }) => {
      const { user, actor, browser } = person
      consume(perAccount(user.id))
      await requireGoodPassword(password, user.email)
      const { requirePassword, hashPassword } = await auth()
      const found = await accounts.passwordOf(services, user.id)
      const hashes = await confirming(person, 'password', () =>
        inTurn(browser.address, async () => ({
          before: await requirePassword(found, current),
          hashed: await hashPassword(password),
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
    'second-factor.begin': async (person, { password }) => {
      if (person.user.two_factor_enabled === 1)
        throw new Fault('conflict', { message: 'There is a second factor. Remove it first.' })
      const { beginSecondFactor } = await auth()
      return change(person, 'person.second-factor-begun', (db) =>
        beginSecondFactor(db, person.browser, password),
      )
    },
    'second-factor.confirm': async (person, { code }) => {
      const { confirmSecondFactor } = await auth()
      return change(person, 'person.second-factor-added', async (db) => ({
        result: DONE,
        cookies: await confirmSecondFactor(db, person.browser, {
          userId: person.user.id,
          sessionId: person.actor.session?.id as string,
          code: code.replaceAll(' ', ''),
        }),
      }))
    },
    'second-factor.remove': async (person, { password }) => {
      const { removeSecondFactor } = await auth()
      return change(person, 'person.second-factor-removed', async (db) => ({
        result: DONE,
        cookies: await removeSecondFactor(db, person.browser, password),
      }))
    },

    'workspace.read': async (ctx) => ({
      ...(await readWorkspace(ctx)),
      role: ctx.role,
      edgeName: await findActiveEdgeName(services),
      keysCanManageKeys: variant === 'A',
    }),
    'keys.list': (ctx, page) => keys.listForMembers(ctx, page),
    'keys.create': (ctx, { label }) => keys.createKey(ctx, label),
    'keys.revoke': (ctx, { id }) => keys.revoke(ctx, id),
    'usage.read': (ctx, { days }) => readUsage(ctx, days),
    'audit.list': (ctx, page) => readAudit(ctx, page),

    'members.list': (ctx) => members.listMembersAndInvitations(ctx),
    'members.set-role': (ctx, { id, role }) => members.setRole(ctx, id, role),
    'members.remove': (ctx, { id }) => members.removeMember(ctx, id),
    'members.leave': (ctx) => members.removeMember(ctx, ctx.actor.id),
    'invitations.create': async (ctx, given) => {
      const { secret, ...made } = await members.invite(ctx, given, { mails: sendMail !== undefined })
      const link = linkAddress(address(), secret)
      const invitation = { ...made, email: given.email.toLowerCase(), role: given.role }
      if (!sendMail) return { ...invitation, link }
      const { name } = await readWorkspace(ctx)
      await sendMail(invitationEmail(invitation.email, { by: ctx.actor.name, workspace: name, link })).catch(
        (cause) => {
          throw new Fault('unavailable', {
            message:
              'The invitation could not be sent by mail. Invite once more when the mail server answers again.',
            retryAfterS: 30,
            cause,
          })
        },
      )
      return { ...invitation, link: null }
    },
    'invitations.revoke': (ctx, { id }) => members.revokeInvitation(ctx, id),
    'description.read': () => document,
  }

  async function mailResetLink(email: string): Promise<void> {
    const user = await accounts.findByEmail(services, email)
    const made = user && (await accounts.createMailedResetLink(services, user))
    if (made && sendMail) await sendMail(resetEmail(user.email, linkAddress(address(), made.secret)))
  }

  registerOperations<Callers, typeof dashboardOperations>(server, dashboardOperations, handlers, {
    prefix: DASHBOARD_PREFIX,
    baseUrl,
    async authenticate(request, reply, access) {
      requireSameOrigin(request, baseUrl)
      if (request.routeOptions.config.operation?.id === 'sign-in.return') requireNavigation(request)
      return admit(request, reply, access)
    },
  })
}

const describeDashboard = (baseUrl = '') =>
  describe({ ...dashboardInfo, serverUrl: baseUrl + DASHBOARD_PREFIX, operations: dashboardOperations })
