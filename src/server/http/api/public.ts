// The public API: /api/v1 in the variant that the deployment runs.

import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Api, apis } from '../../../contract/apis.ts'
import type { Operation } from '../../../contract/operation.ts'
import type { Variant } from '../../../contract/variants.ts'
import { Fault } from '../../domain/fault.ts'
import * as keys from '../../domain/keys/lifecycle.ts'
import { readUsage } from '../../domain/usage/read.ts'
import type { WorkspaceRow, WorkspaceView } from '../../domain/workspaces/manage.ts'
import {
  type InvalidCredential,
  type MaybePromise,
  thenMaybe,
  type ValidKey,
} from '../../verification/verify.ts'
import { keyMessages } from '../auth/authenticator.ts'
import { createKeyAuth, type KeyAuthOptions, type KeyContext } from '../auth/key-caller.ts'
import type { NodeCounters } from '../limits/counters.ts'
import { createWriteLimits } from '../limits/write-limits.ts'
import { LongLists } from '../operations/long-lists.ts'
import { type Handlers, registerOperations } from '../operations/routes.ts'
import { createOpenApiDocument } from './openapi-document.ts'

interface PublicOptions extends KeyAuthOptions {
  counters: NodeCounters
  variant: Variant
  /** Public URL of the server; undefined if it is not configured. */
  baseUrl: string | undefined
  describeWorkspace: (row: WorkspaceRow) => WorkspaceView
}

type Callers = { anyone: undefined; key: KeyContext }
type PublicApi = (typeof apis)[`public${Variant}`]

export function registerPublicApi(server: FastifyInstance, options: PublicOptions): void {
  const { services, counters, verifier, variant, baseUrl, describeWorkspace } = options
  const api: PublicApi = apis[`public${variant}`]
  const authenticate = createKeyAuth(options)
  const writes = createWriteLimits(services.limits.writesPerHour, counters)
  const longLists = new LongLists(
    'Too many long lists are being read at the same time. Try again shortly, or read pages with ?limit=1000.',
  )

  const handlers: Handlers<Callers, PublicApi['operations'][number]> = {
    'workspace.read': ({ workspaceId }) => thenMaybe(verifier.getWorkspace(workspaceId), describeWorkspace),
    'tokens.list': async (ctx, page) => {
      const list = await keys.listPage(ctx, page)
      if (!list.more) return list
      // A key that is revoked while it reads gets no further slice.
      const authorize = async () => requireValid(await verifier.verifyKey(ctx.apiKey))
      return { ...list, more: longLists.open(ctx.workspaceId, list.more, authorize) }
    },
    'tokens.create': (ctx, { label, 'idempotency-key': idempotencyKey }) =>
      keys.createKey(ctx, {
        label,
        idempotency: idempotencyKey ? { idempotencyKey, apiKey: ctx.apiKey } : undefined,
      }),
    'tokens.revoke': (ctx, { id }) => keys.revoke(ctx, id),
    'usage.read': (ctx, { days }) => readUsage(ctx, days),
    // The document describes the running variant only.
    'description.read': createOpenApiDocument(api, baseUrl),
  }

  /** A key may always revoke itself, so that anyone who finds a leaked key can revoke it. */
  function spendWrite({ routeOptions, params }: FastifyRequest, ctx: KeyContext): MaybePromise<KeyContext> {
    const { method } = routeOptions.config.operation as Operation
    const { id } = ctx.actor
    if (method === 'GET' || (params as { id?: string }).id === id) return ctx
    const spent = method === 'POST' ? writes.spendForKeyCreation(id, ctx.workspaceId) : writes.spendByKey(id)
    return thenMaybe(spent, () => ctx)
  }

  mountPreflight(server, api)
  registerOperations<Callers, PublicApi>(server, api, handlers, {
    baseUrl,
    authenticate: (request, reply) =>
      thenMaybe(authenticate(request, reply), (ctx) => spendWrite(request, ctx)),
    // Revocations never wait.
    queue: {
      isQueued: ({ method }) => method === 'POST',
      run: (caller, handle) => writes.queue.run((caller as KeyContext).actor.id, handle),
    },
  })
}

/** Access-Control-Request-Headers: names of headers, separated by commas. */
const HEADER_NAMES = /^[\w!#$%&'*+.^`|~-]+(?: *, *[\w!#$%&'*+.^`|~-]+)*$/
const HEADER_NAMES_CHARS_MAX = 1_000

/**
 * Preflight succeeds for every path, so that a page can read the 404 of one that does not exist, and allows
 * every header: libraries add their own, and there are no cookies that a page could misuse.
 */
function mountPreflight(server: FastifyInstance, { name, operations }: Api): void {
  const methods = new Set(operations.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])))
  const allowed = {
    'access-control-allow-methods': [...methods, 'OPTIONS'].join(', '),
    'access-control-allow-headers':
      'Authorization, Content-Type, Idempotency-Key, If-None-Match, Traceparent, Tracestate',
    'access-control-max-age': '86400',
    vary: 'Access-Control-Request-Headers',
  }
  server.options('/api/*', { config: { surface: name } }, (request, reply) => {
    reply.code(204).headers(allowed)
    const names = request.headers['access-control-request-headers'] ?? ''
    if (names.length <= HEADER_NAMES_CHARS_MAX && HEADER_NAMES.test(names))
      reply.header('access-control-allow-headers', names)
    return reply.send()
  })
}

function requireValid(result: ValidKey | InvalidCredential): void {
  if (!result.valid) throw new Fault('unauthorized', { message: keyMessages[result.reason] })
}
