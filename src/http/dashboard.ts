// The dashboard's side: /dashboard/api. People who are signed in, from our own page, and nobody else.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Auth, WithCookies } from '../auth/auth.ts'
import type { Browser } from '../auth/browser.ts'
import type { Sso } from '../auth/sso.ts'
import { DASHBOARD_PREFIX, dashboardOperations } from '../contract/dashboard/index.ts'
import { describe } from '../contract/openapi.ts'
import type { Access, Role } from '../contract/operation.ts'
import type { Variant } from '../contract/variants.ts'
import * as accounts from '../domain/accounts.ts'
import { SIGNED_OUT } from '../domain/actors.ts'
import { readAudit } from '../domain/audit.ts'
import type { PersonActor, World } from '../domain/context.ts'
import { Fault } from '../domain/fault.ts'
import * as keys from '../domain/keys.ts'
import { applyLink, linkAddress, readLink } from '../domain/links.ts'
import { requireGoodPassword } from '../domain/passwords.ts'
import * as people from '../domain/people.ts'
import { readUsage } from '../domain/usage.ts'
import { readWorkspace } from '../domain/workspaces.ts'
import { createAttempts, type Limits } from './attempts.ts'
import { invitationLetter, type Letter, resetLetter } from './letters.ts'
import { requireSameOrigin } from './same-origin.ts'
import { type Handlers, mountSurface } from './surface.ts'

export interface DashboardOptions {
  world: World
  variant: Variant
  /** Where people reach the server; undefined means where it listens. */
  baseUrl: string | undefined
  /** Where links lead. */
  address: () => string
  /** Loaded when first asked for. */
  auth: () => Promise<Auth>
  sso: { host: string; open: () => Promise<Sso> } | undefined
  sendMail: ((letter: Letter) => Promise<void>) | undefined
}

interface Visitor {
  browser: Browser
  /** Sends cookies along with the answer, and answers with the rest. */
  answer: <T>(given: WithCookies<T>) => T
}

interface Person extends Visitor {
  user: NonNullable<Awaited<ReturnType<typeof accounts.findPerson>>>
  actor: PersonActor
}

type Member = Person & people.PersonContext

interface Callers {
  anyone: undefined
  visitor: Visitor
  person: Person
  member: Member
  admin: Member
  owner: Member
}

const DONE = { done: true } as const

export function mountDashboard(server: FastifyInstance, options: DashboardOptions): void {
  const { world, variant, baseUrl, address, auth, sso, sendMail } = options
  const { attempt, spend } = createAttempts(world.clock)
  const document = describeDashboard(baseUrl)
  const origin = baseUrl && new URL(baseUrl).origin

  async function personOf(visitor: Visitor): Promise<Omit<Person, keyof Visitor> | undefined> {
    const signed = await (await auth()).readSession(visitor.browser)
    if (!signed) return undefined
    const { userId, sessionId } = visitor.answer(signed)
    const user = await accounts.findPerson(world, userId)
    if (!user) return undefined
    const session = { id: sessionId, needs: 'member' as const }
    return { user, actor: { kind: 'person', id: user.id, name: user.name, session } }
  }

  const openerOf = async (visitor: Visitor) => (await personOf(visitor))?.user

  /** Does something to one's own account that better-auth carries out, and writes it down with it. */
  async function change<T>(
    person: Person,
    action: Parameters<typeof accounts.actOnSelf>[2],
    act: (db: Parameters<Parameters<typeof accounts.actOnSelf>[3]>[0]) => Promise<WithCookies<T>>,
  ): Promise<T> {
    let done: WithCookies<T> | undefined
    await attempt([[`account ${person.user.id}`, 10]], () =>
      accounts.actOnSelf(world, person.actor, action, async (db) => {
        done = await act(db)
      }),
    )
    return person.answer(done as WithCookies<T>)
  }

  const handlers: Handlers<Callers, (typeof dashboardOperations)[number]> = {
    'sign-in.options': () => ({ sso: sso?.host ?? null, resetByMail: sendMail !== undefined }),
    'sign-in.password': async ({ browser, answer }, { email, password }) => {
      const { signIn } = await auth()
      return answer(await attempt(limitsOf(browser, email), () => signIn(browser, email, password)))
    },
    'sign-in.code': async ({ browser, answer }, { code }) => {
      const { giveCode } = await auth()
      return answer(await attempt([[`code ${browser.address}`, 20]], () => giveCode(browser, code)))
    },
    'sign-in.sso': async ({ browser, answer }) => {
      if (!sso) throw new Fault('not_found')
      return answer(await (await sso.open()).begin(browser))
    },
    'sign-in.return': async ({ browser, answer }, query) => {
      if (!sso) throw new Fault('not_found')
      const { failure } = answer(await (await sso.open()).finish(browser, query as Record<string, string>))
      const path = baseUrl ? new URL(baseUrl).pathname.replace(/\/$/, '') : ''
      return { location: failure ? `${path}/sign-in?error=${failure}` : `${path}/` }
    },
    'sign-in.forgotten': async ({ browser }, { email }) => {
      if (!sendMail) throw new Fault('not_found')
      // Each counts, whether the address is known or not: nobody is to be flooded with mail.
      spend([
        [`mail ${email.toLowerCase()}`, 3],
        [`mail ${browser.address}`, 20],
      ])
      // Not waited for: how long it takes would tell whether the address is known.
      void mailResetLink(email).catch((error) => server.log.error({ err: error }, 'could not send mail'))
      return { asked: true as const }
    },
    'links.read': async (visitor, { link }) => readLink(world, link, await openerOf(visitor)),
    'links.use': async (visitor, given) => {
      const { hashPassword, signIn } = await auth()
      const credentials = await applyLink(world, given, await openerOf(visitor), hashPassword)
      if (!credentials) return { next: 'signed_in' as const }
      return visitor.answer(await signIn(visitor.browser, credentials.email, credentials.password))
    },

    'session.read': ({ user }) => accounts.describeSelf(world, user),
    'session.end': async ({ browser, answer }) =>
      answer({ result: DONE, cookies: await (await auth()).signOut(browser) }),
    'session.end-all': async ({ actor }) => {
      await accounts.signOutEverywhere(world, actor)
      return DONE
    },
    'account.rename': async ({ actor }, { name }) => {
      await accounts.rename(world, actor, name)
      return DONE
    },
    'account.password': async (person, { current, password }) => {
      await requireGoodPassword(password, person.user.email)
      const { changePassword } = await auth()
      return change(person, 'person.password-changed', async (db) => ({
        result: DONE,
        cookies: await changePassword(db, person.browser, current, password),
      }))
    },
    'account.sessions': ({ actor }) => accounts.readSessions(world, actor),
    'account.end-session': async ({ actor }, { id }) => {
      await accounts.endSession(world, actor, id)
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
        cookies: await confirmSecondFactor(db, person.browser, code.replaceAll(' ', '')),
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
      keysCanManageKeys: variant === 'A',
    }),
    'keys.list': (ctx, page) => keys.listForPeople(ctx, page),
    'keys.create': (ctx, { label }) => keys.createKey(ctx, label),
    'keys.revoke': (ctx, { id }) => keys.revoke(ctx, id),
    'usage.read': (ctx, { days }) => readUsage(ctx, days),
    'audit.list': (ctx, page) => readAudit(ctx, page),

    'people.list': (ctx) => people.listPeople(ctx),
    'people.set-role': (ctx, { id, role }) => people.setRole(ctx, id, role),
    'people.remove': (ctx, { id }) => people.removePerson(ctx, id),
    'people.leave': (ctx) => people.removePerson(ctx, ctx.actor.id),
    'invitations.create': async (ctx, given) => {
      const { secret, ...made } = await people.invite(ctx, given, { mails: sendMail !== undefined })
      const link = linkAddress(address(), secret)
      const invitation = { ...made, email: given.email.toLowerCase(), role: given.role }
      if (!sendMail) return { ...invitation, link }
      const { name } = await readWorkspace(ctx)
      await sendMail(invitationLetter(invitation.email, { by: ctx.actor.name, workspace: name, link })).catch(
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
    'invitations.revoke': (ctx, { id }) => people.revokeInvitation(ctx, id),
    'description.read': () => document,
  }

  async function mailResetLink(email: string): Promise<void> {
    const user = await accounts.findByEmail(world, email)
    if (!user || !sendMail) return
    const actor: PersonActor = { kind: 'person', id: user.id, name: user.name }
    const { secret } = await accounts.makeResetLink(world, actor, user)
    await sendMail(resetLetter(user.email, linkAddress(address(), secret)))
  }

  mountSurface<Callers, typeof dashboardOperations>(server, dashboardOperations, handlers, {
    prefix: DASHBOARD_PREFIX,
    baseUrl,
    async admit(request, reply, access) {
      requireSameOrigin(request, origin)
      const visitor = visitorOf(request, reply)
      if (access === 'visitor') return visitor
      const found = await personOf(visitor)
      if (!found) throw new Fault('unauthorized', { message: SIGNED_OUT })
      const person: Person = { ...visitor, ...found }
      // Known from here on, so that the log names the person whatever happens next.
      request.caller = person
      return access === 'person' ? person : memberOf(person, request, access)
    },
  })

  async function memberOf(person: Person, request: FastifyRequest, access: Access): Promise<Member> {
    const { workspace } = request.params as { workspace: string }
    const needs = access as Role
    const { workspaceId, role } = await people.requireMembership(world, workspace, person.user.id, needs)
    const session = { id: person.actor.session?.id as string, needs }
    return { ...world, ...person, workspaceId, role, actor: { ...person.actor, session } }
  }
}

/** A password is guessed for one address from one place, for one address from many, or for many from one. */
const limitsOf = ({ address }: Browser, email: string): Limits => [
  [`sign-in ${email.toLowerCase()} ${address}`, 5],
  [`sign-in ${email.toLowerCase()}`, 50],
  [`sign-in ${address}`, 50],
]

function visitorOf(request: FastifyRequest, reply: FastifyReply): Visitor {
  const { cookie = '', 'user-agent': agent = '' } = request.headers
  return {
    browser: { cookie, agent: agent.slice(0, 300), address: request.ip },
    answer({ result, cookies }) {
      if (cookies.length > 0) reply.header('set-cookie', cookies)
      return result
    },
  }
}

function describeDashboard(baseUrl = '') {
  return describe({
    title: 'Adit dashboard',
    version: '1',
    description:
      'What the dashboard’s page asks of the server, for people who are signed in. Writes are taken from the page itself ' +
      'only. Programs use the API under /api/v1 and a key.',
    serverUrl: baseUrl + DASHBOARD_PREFIX,
    operations: dashboardOperations,
    credential: 'The session of somebody who is signed in.',
    cookie: 'adit.session_token',
    crossOrigin: false,
    groups: {
      'sign-in': 'Getting in.',
      links: 'Links that let somebody in, once and for 24 hours.',
      session: 'Who is signed in.',
      account: 'One’s own account.',
      'second-factor': 'A second factor for one’s own account.',
      workspace: 'A workspace that one belongs to.',
      keys: 'Its API keys.',
      usage: 'What went through its tunnels.',
      audit: 'Who did what in it.',
      people: 'Who belongs to it.',
      invitations: 'Who is to belong to it.',
      description: 'This description, for programs.',
    },
  })
}
