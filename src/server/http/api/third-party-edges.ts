// Third-party edges with their own protocols: frp as a server plugin, sish by its authentication webhook.
// Neither can send headers, so the edge credential is in the path; the access log has only the pattern of the
// route.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { apis } from '../../../contract/apis.ts'
import { faults } from '../../../contract/faults.ts'
import { Fault } from '../../domain/fault.ts'
import { isQuotaReached, QUOTA_REACHED } from '../../domain/quotas/limits.ts'
import { type Checker, checker } from '../../domain/validation.ts'
import type { WorkspaceRow, WorkspaceView } from '../../domain/workspaces/manage.ts'
import type { ChangeFollower } from '../../verification/change-follower.ts'
import type { EdgeRef, EdgeWorkspaces } from '../../verification/edge-workspaces.ts'
import type { CredentialVerifier, MaybePromise } from '../../verification/verify.ts'
import { createAuthenticator, edgeMessages, keyMessages } from '../auth/authenticator.ts'
import { errorBody, faultFor } from '../server/errors.ts'
import { createDatabaseWait } from './database-wait.ts'
import { asObject, type FrpResponse, handleFrp, rejected } from './frp.ts'

interface ThirdPartyEdgesOptions {
  clock: () => number
  verifier: CredentialVerifier
  edgeWorkspaces: EdgeWorkspaces
  follower: ChangeFollower
  /** Aborted when requests must not wait any longer. */
  closing: AbortSignal
  describeWorkspace: (row: WorkspaceRow) => WorkspaceView
}

/**
 * frpc closes its tunnels at a failed Ping. frps closes them 30 seconds after the last successful Ping; the
 * next Ping is sent up to 11 seconds after it.
 */
const PING_WAIT_MS = 10_000

const SshLogin = Type.Object({
  password: Type.String({ maxLength: 200 }),
  user: Type.String({ maxLength: 256 }),
  remote_addr: Type.Optional(Type.String({ maxLength: 256 })),
})

export function registerThirdPartyEdges(
  server: FastifyInstance,
  { clock, verifier, edgeWorkspaces, follower, closing, describeWorkspace }: ThirdPartyEdgesOptions,
): void {
  const authenticateEdge = createAuthenticator(verifier.verifyEdge, edgeMessages)
  const authenticateKey = createAuthenticator(edgeWorkspaces.verifyKey, keyMessages)
  const checkSshLogin: Checker<Type.Static<typeof SshLogin>> = checker(SshLogin, '/body')
  const waitForDatabase = createDatabaseWait(follower.isUpToDate, closing)
  const callingEdge = ({ caller }: FastifyRequest) => (caller as { actor: EdgeRef }).actor

  /** Runs before the body is read, and again afterwards: the edge may have been revoked meanwhile. */
  const authenticate = async (request: FastifyRequest) => {
    const { credential } = request.params as { credential: string }
    const { edgeId, group } = await authenticateEdge(request, credential)
    request.caller = { actor: { kind: 'edge', id: edgeId, group } }
  }

  /** The query names the operation before the body is read. */
  const attempt = <T>(request: FastifyRequest, reply: FastifyReply, run: () => MaybePromise<T>) =>
    (request.query as { op?: unknown }).op === 'Ping'
      ? waitForDatabase(run, () => reply.elapsedTime < PING_WAIT_MS)
      : run()

  const authenticateFrp = async (request: FastifyRequest, reply: FastifyReply) =>
    attempt(request, reply, () => authenticate(request))

  server.route({
    method: 'POST',
    url: '/edge/frp/:credential',
    config: { takesBody: true, surface: apis.edge.name },
    onRequest: authenticateFrp,
    preValidation: authenticateFrp,
    errorHandler: (error, request, reply) => {
      const fault = faultFor(error, request)
      const { status } = faults[fault.code]
      // An error status is not a decision, so a proxy in front can ask another node.
      if (status >= 500) return reply.code(status).send(errorBody(fault))
      reply.code(200).send(rejected(fault.message))
    },
    handler: async (request, reply): Promise<FrpResponse> => {
      const { op, content } = asObject(request.body)
      return attempt(request, reply, () =>
        handleFrp(op, content, {
          clock,
          verifyKey: (secret) => edgeWorkspaces.verifyKey(secret, callingEdge(request)),
          describeWorkspace,
        }),
      )
    },
  })

  server.route({
    method: 'POST',
    url: '/edge/sish/:credential',
    config: { takesBody: true, surface: apis.edge.name },
    onRequest: authenticate,
    preValidation: authenticate,
    handler: async (request) => {
      checkSshLogin(request.body)
      const { password, user } = request.body as Type.Static<typeof SshLogin>
      const { workspace } = await authenticateKey(request, password, callingEdge(request))
      const { slug, provisioned, quota } = describeWorkspace(workspace)
      if (!provisioned)
        throw new Fault('forbidden', { message: `The workspace "${slug}" is not provisioned yet.` })
      if (isQuotaReached(quota, clock())) throw new Fault('forbidden', { message: QUOTA_REACHED })
      // sish puts the user name into host names, in lower case.
      if (user.toLowerCase() !== slug)
        throw new Fault('forbidden', {
          message: `The user name must be "${slug}", the slug of the API key's workspace.`,
        })
      return { workspace: slug }
    },
  })
}
