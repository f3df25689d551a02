// Who is at the browser: somebody, somebody who is signed in, or a member of the workspace in the path.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Auth, WithCookies } from '../../auth/auth.ts'
import type { Browser } from '../../auth/browser.ts'
import type { Access, Role } from '../../contract/operation.ts'
import { cleanText } from '../../contract/text.ts'
import { findEnabledUser } from '../../domain/accounts.ts'
import { SIGNED_OUT } from '../../domain/actors.ts'
import type { Services, UserActor } from '../../domain/context.ts'
import { Fault } from '../../domain/fault.ts'
import { type MemberContext, requireMembership } from '../../domain/members.ts'

export interface Visitor {
  browser: Browser
  /** Sends cookies along with the answer, and answers with the rest. */
  answer: <T>(given: WithCookies<T>) => T
}

export interface Person extends Visitor {
  user: NonNullable<Awaited<ReturnType<typeof findEnabledUser>>>
  actor: UserActor
}

export type Member = Person & MemberContext

/** What is known of a caller, by the access that an operation asks for. */
export interface Callers {
  anyone: undefined
  browser: Visitor
  user: Person
  member: Member
  admin: Member
  owner: Member
}

/** A user agent is shown in the list of sessions. */
const AGENT_CHARS_MAX = 300

export function createPeople(services: Services, auth: () => Promise<Auth>) {
  /** Who is signed in at that browser; undefined where nobody is. */
  async function findSignedIn(visitor: Visitor): Promise<Person | undefined> {
    const signed = await (await auth()).readSession(visitor.browser)
    if (!signed) return undefined
    const { userId, sessionId } = visitor.answer(signed)
    const user = await findEnabledUser(services, userId)
    if (!user) return undefined
    const session = { id: sessionId, needs: 'member' as const }
    const { address } = visitor.browser
    return { ...visitor, user, actor: { kind: 'person', id: user.id, name: user.name, address, session } }
  }

  async function memberOf(person: Person, request: FastifyRequest, needs: Role): Promise<Member> {
    const { workspace } = request.params as { workspace: string }
    const { workspaceId, role } = await requireMembership(services, workspace, person.user.id, needs)
    const session = { id: person.actor.session?.id as string, needs }
    return { ...services, ...person, workspaceId, role, actor: { ...person.actor, session } }
  }

  return {
    findSignedIn,
    async admit(request: FastifyRequest, reply: FastifyReply, access: Access) {
      const visitor = visitorOf(request, reply)
      if (access === 'browser') return visitor
      const person = await findSignedIn(visitor)
      if (!person) throw new Fault('unauthorized', { message: SIGNED_OUT })
      // Known from here on, so that the log names the person whatever happens next.
      request.caller = person
      return access === 'user' ? person : memberOf(person, request, access as Role)
    },
  }
}

function visitorOf(request: FastifyRequest, reply: FastifyReply): Visitor {
  const { cookie = '', 'user-agent': agent = '' } = request.headers
  return {
    browser: { cookie, agent: cleanText(agent, AGENT_CHARS_MAX), address: request.clientAddress ?? '' },
    answer({ result, cookies }) {
      if (cookies.length > 0) reply.header('set-cookie', cookies)
      return result
    },
  }
}
