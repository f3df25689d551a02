// Third-party edges with their own protocols: frp as a server plugin, sish by its authentication webhook.
// Neither can send headers, so the edge credential is in the path; the access log has only the pattern of the
// route.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { type Directory, thenMaybe } from '../../directory/directory.ts'
import { Fault } from '../../domain/fault.ts'
import { type Checker, checker } from '../../domain/validation.ts'
import type { WorkspaceRow, WorkspaceView } from '../../domain/workspaces.ts'
import { isDnsLabel } from '../../net/hostname.ts'
import { createAuthenticator, edgeMessages, keyMessages } from '../auth/authenticator.ts'
import { faultFor } from '../server/errors.ts'
import { asObject, type FrpResponse, handleFrp, rejected } from './frp.ts'

export interface ThirdPartyEdgesOptions {
  directory: Directory
  describeWorkspace: (row: WorkspaceRow) => WorkspaceView
}

const SshLogin = Type.Object({
  password: Type.String({ maxLength: 200 }),
  user: Type.String({ maxLength: 256 }),
  remote_addr: Type.Optional(Type.String({ maxLength: 256 })),
})

export function registerThirdPartyEdges(
  server: FastifyInstance,
  { directory, describeWorkspace }: ThirdPartyEdgesOptions,
): void {
  const authenticateEdge = createAuthenticator(directory.verifyEdge, edgeMessages)
  const authenticateKey = createAuthenticator(directory.verifyKey, keyMessages)
  const checkSshLogin: Checker<Type.Static<typeof SshLogin>> = checker(SshLogin, '/body')
  const workspaceOf = async (id: string) => describeWorkspace(await directory.getWorkspace(id))

  /** Runs before the body is read, and again afterwards: the edge may have been revoked meanwhile. */
  const authenticate = async (request: FastifyRequest) => {
    const { credential } = request.params as { credential: string }
    request.caller = await thenMaybe(authenticateEdge(request, credential), ({ edgeId }) => ({
      actor: { kind: 'edge', id: edgeId },
    }))
  }

  server.route({
    method: 'POST',
    url: '/edge/frp/:credential',
    config: { takesBody: true },
    onRequest: authenticate,
    preValidation: authenticate,
    errorHandler: (error, request, reply) => {
      const { code, message } = faultFor(error, request)
      const reason =
        code === 'internal' ? `Internal error. See the server log for request ${request.id}.` : message
      reply.code(200).send(rejected(reason))
    },
    handler: (request): Promise<FrpResponse> => {
      const { op, content } = asObject(request.body)
      return handleFrp(op, content, {
        verifyKey: directory.verifyKey,
        describeWorkspace: workspaceOf,
      })
    },
  })

  server.route({
    method: 'POST',
    url: '/edge/sish/:credential',
    config: { takesBody: true },
    onRequest: authenticate,
    preValidation: authenticate,
    handler: async (request) => {
      checkSshLogin(request.body)
      const { password, user } = request.body as Type.Static<typeof SshLogin>
      const { workspaceId } = await authenticateKey(request, password)
      const { slug, provisioned } = await workspaceOf(workspaceId)
      if (!provisioned)
        throw new Fault('forbidden', { message: `The workspace "${slug}" is not provisioned yet.` })
      // sish can be configured to use the user name in host names: it must not be the slug of another
      // workspace.
      const labels = user.toLowerCase().split('.')
      if (!labels.every(isDnsLabel))
        throw new Fault('forbidden', {
          message: 'Invalid user name. Use the slug of the workspace.',
        })
      const owners = await directory.findWorkspaceIds(labels)
      for (const [named, owner] of owners)
        if (owner !== workspaceId)
          throw new Fault('forbidden', {
            message: `The API key belongs to the workspace "${slug}", not to "${named}".`,
          })
      return { workspace: slug }
    },
  })
}
