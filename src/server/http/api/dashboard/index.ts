// The dashboard's API, /dashboard/api: for users who are signed in, from the dashboard's own pages only. Each
// file of this folder has the handlers of one group of operations.

import type { FastifyInstance } from 'fastify'
import { apis } from '../../../../contract/apis.ts'
import { isLimitedWrite } from '../../../../contract/operation.ts'
import { requireNavigation, requireSameOrigin } from '../../auth/csrf.ts'
import { type Callers, createSessionAuthenticator, type UserCaller } from '../../auth/sessions.ts'
import { createLoginThrottle } from '../../limits/login-throttle.ts'
import { createPasswordQueue } from '../../limits/password-queue.ts'
import { createSignInLimits } from '../../limits/sign-in-limits.ts'
import { createWriteLimits } from '../../limits/write-limits.ts'
import { registerOperations } from '../../operations/routes.ts'
import { createOpenApiDocument } from '../openapi-document.ts'
import { accountHandlers } from './account.ts'
import { agentHandlers } from './agents.ts'
import { confirmations } from './confirmation.ts'
import { deviceHandlers } from './devices.ts'
import type { DashboardHandlers, DashboardOptions } from './handlers.ts'
import { linkHandlers } from './links.ts'
import { memberHandlers } from './members.ts'
import { signInHandlers } from './sign-in.ts'
import { tunnelHandlers } from './tunnels.ts'
import { twoFactorHandlers } from './two-factor.ts'
import { webhookHandlers } from './webhooks.ts'
import { workspaceHandlers } from './workspace.ts'

export function registerDashboardApi(server: FastifyInstance, options: DashboardOptions): void {
  const { services, counters, baseUrl, auth, knownBrowsers } = options
  const { authenticate, findUser } = createSessionAuthenticator(services, auth)
  const writes = createWriteLimits(services.limits.writesPerHour, counters)
  const throttle = createLoginThrottle(counters)
  const enqueue = createPasswordQueue()
  const signInLimits = createSignInLimits(services, knownBrowsers)
  const deps = { ...options, throttle, enqueue, signInLimits, findUser, log: server.log }
  const confirmed = { ...deps, ...confirmations(deps) }
  const handlers: DashboardHandlers = {
    ...signInHandlers(deps),
    ...linkHandlers(deps),
    ...accountHandlers(confirmed),
    ...twoFactorHandlers(confirmed),
    ...workspaceHandlers(deps),
    ...deviceHandlers(deps),
    ...agentHandlers(deps),
    ...memberHandlers(deps),
    ...tunnelHandlers(deps),
    ...webhookHandlers(deps),
    'description.read': createOpenApiDocument(apis.dashboard, baseUrl),
  }
  registerOperations<Callers, typeof apis.dashboard>(server, apis.dashboard, handlers, {
    baseUrl,
    async authenticate(request, reply, access) {
      requireSameOrigin(request, baseUrl)
      if (request.routeOptions.config.operation?.id === 'sign-in.return') requireNavigation(request)
      const caller = await authenticate(request, reply, access)
      const { operation } = request.routeOptions.config
      if (operation && isLimitedWrite(operation)) await writes.spendByUser((caller as UserCaller).user.id)
      return caller
    },
    queue: {
      isQueued: isLimitedWrite,
      run: (caller, handle) => writes.queue.run((caller as UserCaller).user.id, handle),
    },
  })
}
