// The workspace API: /workspace/v1, for tunnel clients, scripts and agents with an API key.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { apis } from '../../../contract/apis.ts'
import type { Operation } from '../../../contract/operation.ts'
import type { Variant } from '../../../contract/variants.ts'
import { Fault } from '../../domain/fault.ts'
import { closeAndWait } from '../../domain/tunnels/close.ts'
import { findEdgeUrl, listForWorkspace } from '../../domain/tunnels/edges.ts'
import { listNames } from '../../domain/tunnels/names.ts'
import { listOpen, readOpen } from '../../domain/tunnels/open.ts'
import type { WorkspaceRow, WorkspaceView } from '../../domain/workspaces/manage.ts'
import { type MaybePromise, thenMaybe } from '../../verification/verify.ts'
import { createKeyAuth, type KeyAuthOptions, type KeyContext } from '../auth/key-caller.ts'
import type { NodeCounters } from '../limits/counters.ts'
import { createWriteLimits } from '../limits/write-limits.ts'
import { type Handlers, registerOperations } from '../operations/routes.ts'
import { createOpenApiDocument } from './openapi-document.ts'

interface WorkspaceOptions extends KeyAuthOptions {
  counters: NodeCounters
  variant: Variant
  baseUrl: string | undefined
  /** The URL of the dashboard. */
  publicUrl: () => string
  describeWorkspace: (row: WorkspaceRow) => WorkspaceView
}

type Callers = { anyone: undefined; key: KeyContext }

export function registerWorkspaceApi(server: FastifyInstance, options: WorkspaceOptions): void {
  const { services, counters, variant, verifier, baseUrl, publicUrl, describeWorkspace } = options
  const authenticate = createKeyAuth(options)
  const writes = createWriteLimits(services.limits.writesPerHour, counters)
  const handlers: Handlers<Callers, (typeof apis.workspace.operations)[number]> = {
    'tunnels.list': (ctx, page) => listOpen(ctx, page),
    'tunnels.read': (ctx, { id }) => readOpen(ctx, id),
    'tunnels.close': (ctx, { id }) => closeAndWait(ctx, id),
    'names.list': (ctx, page) => listNames(ctx, page),
    'edges.list': (ctx, page) => listForWorkspace(ctx, page),
    'edge.find': async (ctx) => {
      const { tunnelBase } = describeWorkspace(await verifier.getWorkspace(ctx.workspaceId))
      return { url: await findEdgeUrl(ctx), tunnelDomain: tunnelBase }
    },
    'description.read': createOpenApiDocument(apis.workspace, baseUrl),
  }

  function admitWrite({ routeOptions }: FastifyRequest, ctx: KeyContext): MaybePromise<KeyContext> {
    if ((routeOptions.config.operation as Operation).method === 'GET') return ctx
    if (variant === 'B') throw keysOnlyRead(publicUrl())
    return thenMaybe(writes.spendByKey(ctx.actor.id), () => ctx)
  }

  registerOperations<Callers, typeof apis.workspace>(server, apis.workspace, handlers, {
    baseUrl,
    authenticate: (request, reply) =>
      thenMaybe(authenticate(request, reply), (ctx) => admitWrite(request, ctx)),
    queue: {
      isQueued: ({ method }) => method !== 'GET',
      run: (caller, handle) => writes.queue.run((caller as KeyContext).actor.id, handle),
    },
  })
}

const keysOnlyRead = (dashboardUrl: string) =>
  new Fault('forbidden', {
    message:
      'API keys only read on this server (API variant B). Admins and owners can do this in the dashboard: ' +
      dashboardUrl,
  })
