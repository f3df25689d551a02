// Approval of agents that sign in, on the page /authorize.
import Type from 'typebox'
import { ok, Slug, TextOrNull, WorkspaceName } from '../fields.ts'
import { AUTHORIZATION_CHARS_MAX } from '../limits.ts'
import { operation, READS_ONLY, STRICT } from '../operation.ts'
import { InWorkspace } from './members.ts'

/** The query string of the page. */
const Request = Type.String({ maxLength: AUTHORIZATION_CHARS_MAX })

/** Where the browser goes with the result. */
const Redirect = { status: 200, schema: Type.Object({ redirectTo: Type.String() }), secret: true } as const

export const agentOperations = [
  operation({
    id: 'agents.read',
    method: 'POST',
    path: '/agents/read',
    access: 'user',
    audit: READS_ONLY,
    summary: 'Find the agent of an authorization request',
    body: Type.Object({ request: Request }, STRICT),
    response: ok({
      /** Chosen by the agent, so it may be false. */
      name: Type.String(),
      /** The host that has published the metadata of the agent; null if it has registered itself. */
      host: TextOrNull,
      /** The host or the app that gets the result. */
      target: Type.String(),
      /** Whether that is an app on the user's computer. */
      isLocal: Type.Boolean(),
      /** Why the request cannot be approved. */
      problem: TextOrNull,
      workspaces: Type.Array(
        Type.Object({
          slug: Slug,
          name: WorkspaceName,
          /** Why the user cannot approve it there, and what to do. */
          obstacle: TextOrNull,
          mayManageKeys: Type.Boolean(),
        }),
      ),
    }),
    faults: ['rate_limited'],
  }),
  operation({
    id: 'agents.approve',
    method: 'POST',
    path: '/workspaces/{workspace}/agents',
    access: 'member',
    audit: ['agent.approved'],
    summary: 'Approve an agent',
    params: Type.Object(InWorkspace),
    body: Type.Object({ request: Request, managesKeys: Type.Boolean() }, STRICT),
    response: Redirect,
    faults: ['rate_limited'],
  }),
  operation({
    id: 'agents.deny',
    method: 'POST',
    path: '/agents/deny',
    access: 'user',
    audit: ['agent.denied'],
    summary: 'Deny an agent',
    body: Type.Object(
      {
        request: Request,
        /** The workspace in which the user cannot approve it: the agent gets the reason. */
        workspace: Type.Optional(Slug),
      },
      STRICT,
    ),
    response: Redirect,
    faults: ['rate_limited'],
  }),
] as const
