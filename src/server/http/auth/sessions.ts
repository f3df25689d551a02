// Authenticates requests of the dashboard by session cookie: any browser, a signed-in user, or a member of
// the workspace in the path.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Access, Role } from '../../../contract/operation.ts'
import { cleanText } from '../../../contract/text.ts'
import type { Browser, WithCookies } from '../../auth/cookies.ts'
import type { Auth } from '../../auth/sign-in.ts'
import { requireMembership } from '../../domain/accounts/members.ts'
import { findEnabledUser } from '../../domain/accounts/users.ts'
import { SIGNED_OUT } from '../../domain/actors.ts'
import type { MemberContext, Services, UserActor } from '../../domain/context.ts'
import { Fault } from '../../domain/fault.ts'

export interface BrowserCaller {
  browser: Browser
  /** Sets the cookies on the response and returns the result. */
  respond: <T>(output: WithCookies<T>) => T
}

export interface UserCaller extends BrowserCaller {
  user: NonNullable<Awaited<ReturnType<typeof findEnabledUser>>>
  actor: UserActor
}

type MemberCaller = UserCaller & MemberContext

/** The caller that a handler gets, by the access that its operation requires. */
export interface Callers {
  anyone: undefined
  browser: BrowserCaller
  user: UserCaller
  member: MemberCaller
  admin: MemberCaller
  owner: MemberCaller
}

/** The user agent is shown in the list of sessions. */
const AGENT_CHARS_MAX = 300

export function createSessionAuthenticator(services: Services, auth: Auth) {
  async function findUser(caller: BrowserCaller): Promise<UserCaller | undefined> {
    const found = await auth.readSession(caller.browser)
    if (!found) return undefined
    const { userId, sessionId } = caller.respond(found)
    const user = await findEnabledUser(services, userId)
    if (!user) return undefined
    const session = { id: sessionId, needs: 'member' as const }
    const { address } = caller.browser
    return { ...caller, user, actor: { kind: 'user', id: user.id, name: user.name, address, session } }
  }

  async function requireMember(
    caller: UserCaller,
    request: FastifyRequest,
    needs: Role,
  ): Promise<MemberCaller> {
    const { workspace } = request.params as { workspace: string }
    const { workspaceId, role } = await requireMembership(services, workspace, caller.user.id, needs)
    const session = { id: caller.actor.session?.id as string, needs }
    return { ...services, ...caller, workspaceId, role, actor: { ...caller.actor, session } }
  }

  return {
    findUser,
    async authenticate(request: FastifyRequest, reply: FastifyReply, access: Access) {
      const caller = browserCaller(request, reply)
      if (access === 'browser') return caller
      const user = await findUser(caller)
      if (!user) throw new Fault('unauthorized', { message: SIGNED_OUT })
      // Set before the role is checked, so that the access log names the user if the check fails.
      request.caller = user
      return access === 'user' ? user : requireMember(user, request, access as Role)
    },
  }
}

function browserCaller(request: FastifyRequest, reply: FastifyReply): BrowserCaller {
  const { cookie = '', 'user-agent': agent = '' } = request.headers
  return {
    browser: { cookie, agent: cleanText(agent, AGENT_CHARS_MAX), address: request.clientAddress ?? '' },
    respond({ result, cookies }) {
      if (cookies.length > 0) reply.header('set-cookie', cookies)
      return result
    },
  }
}
