// The workspace API: /workspace/v1, for tunnel clients and other programs with an API key.
import type { FastifyInstance } from 'fastify'
import { apis } from '../../../contract/apis.ts'
import { findEdgeUrl } from '../../domain/tunnels/edges.ts'
import type { WorkspaceRow, WorkspaceView } from '../../domain/workspaces/manage.ts'
import { createKeyAuth, type KeyAuthOptions, type KeyContext } from '../auth/key-caller.ts'
import { type Handlers, registerOperations } from '../operations/routes.ts'
import { createOpenApiDocument } from './openapi-document.ts'

interface WorkspaceOptions extends KeyAuthOptions {
  baseUrl: string | undefined
  describeWorkspace: (row: WorkspaceRow) => WorkspaceView
}

type Callers = { anyone: undefined; key: KeyContext }

export function registerWorkspaceApi(server: FastifyInstance, options: WorkspaceOptions): void {
  const { verifier, baseUrl, describeWorkspace } = options
  const handlers: Handlers<Callers, (typeof apis.workspace.operations)[number]> = {
    'edge.find': async (ctx) => {
      const { tunnelBase } = describeWorkspace(await verifier.getWorkspace(ctx.workspaceId))
      return { url: await findEdgeUrl(ctx), tunnelDomain: tunnelBase }
    },
    'description.read': createOpenApiDocument(apis.workspace, baseUrl),
  }
  registerOperations<Callers, typeof apis.workspace>(server, apis.workspace, handlers, {
    baseUrl,
    authenticate: createKeyAuth(options),
  })
}
