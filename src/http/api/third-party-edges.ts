// Edges that others wrote, and that ask in their own way: frp as a server plugin, sish by its authentication hook. Both know
// no headers to send, so the edge's credential is in the path; of that the log has only the pattern.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { type Directory, thenMaybe } from '../../directory/directory.ts'
import { Fault } from '../../domain/fault.ts'
import { type Checker, checker } from '../../domain/validation.ts'
import type { WorkspaceRow, WorkspaceView } from '../../domain/workspaces.ts'
import { isDnsLabel } from '../../net/hostname.ts'
import { createAuthenticator, edgeMessages, keyMessages } from '../auth/authenticator.ts'
import { faultFor } from '../server/errors.ts'
import { answerFrp, type FrpAnswer, membersOf, rejected } from './frp.ts'

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
  const admitEdge = createAuthenticator(directory.verifyEdge, edgeMessages)
  const admitKey = createAuthenticator(directory.verifyKey, keyMessages)
  const checkSshLogin: Checker<Type.Static<typeof SshLogin>> = checker(SshLogin, '/body')
  const workspaceOf = async (id: string) => describeWorkspace(await directory.getWorkspace(id))

  /** Before the body is looked at. */
  const admit = async (request: FastifyRequest) => {
    const { credential } = request.params as { credential: string }
    request.caller = await thenMaybe(admitEdge(request, credential), ({ edgeId }) => ({
      actor: { kind: 'edge', id: edgeId },
    }))
  }

  server.route({
    method: 'POST',
    url: '/edge/frp/:credential',
    config: { takesBody: true },
    onRequest: admit,
    errorHandler: (error, request, reply) => {
      const { code, message } = faultFor(error, request)
      const reason = code === 'internal' ? `Adit failed; its log knows this as ${request.id}.` : message
      reply.code(200).send(rejected(reason))
    },
    handler: (request): Promise<FrpAnswer> => {
      const { op, content } = membersOf(request.body)
      return answerFrp(op, content, {
        verifyKey: directory.verifyKey,
        describeWorkspace: workspaceOf,
      })
    },
  })

  server.route({
    method: 'POST',
    url: '/edge/sish/:credential',
    config: { takesBody: true },
    onRequest: admit,
    handler: async (request) => {
      checkSshLogin(request.body)
      const { password, user } = request.body as Type.Static<typeof SshLogin>
      const { workspaceId } = await admitKey(request, password)
      const { slug, provisioned } = await workspaceOf(workspaceId)
      if (!provisioned)
        throw new Fault('forbidden', { message: `The workspace "${slug}" is not provisioned yet.` })
      // sish puts the user's name into host names, where it is told to: nobody gets those of another workspace.
      const labels = user.toLowerCase().split('.')
      if (!labels.every(isDnsLabel))
        throw new Fault('forbidden', {
          message: 'The user must be a name that a host can have: the workspace’s slug.',
        })
      const owners = await directory.findWorkspaceIds(labels)
      for (const [named, owner] of owners)
        if (owner !== workspaceId)
          throw new Fault('forbidden', {
            message: `The key is of the workspace "${slug}", not of "${named}".`,
          })
      return { workspace: slug }
    },
  })
}
