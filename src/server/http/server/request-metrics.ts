// Which metric a request counts in: decided for each route when it is registered.
import type { FastifyInstance } from 'fastify'
import { DASHBOARD_PREFIX } from '../../../contract/dashboard/index.ts'
import { DEVICE_PREFIX } from '../../../contract/device.ts'
import { opsOperations } from '../../../contract/ops.ts'
import type { OperationDurations, RequestDurations } from '../../../lib/metrics/request-durations.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Undefined for streams, whose duration is that of the connection. */
    durations?: OperationDurations
  }
}

const HEALTH_PATHS = new Set<string>(opsOperations.map(({ path }) => path))

/** To be called before routes are registered. */
export function attachDurations(server: FastifyInstance, requests: RequestDurations): void {
  server.addHook('onRoute', (route) => {
    const { operation } = route.config ?? {}
    if (operation?.response.stream) return
    const surface = surfaceOf(route.url)
    const name = operation?.id ?? (surface === 'pages' ? 'page' : route.url)
    route.config = { ...route.config, durations: requests.of(surface, name) }
  })
}

function surfaceOf(path: string): string {
  if (HEALTH_PATHS.has(path)) return 'health'
  if (path.startsWith(DASHBOARD_PREFIX)) return 'dashboard'
  if (path.startsWith('/api/')) return 'api'
  if (path.startsWith('/edge/')) return 'edge'
  if (path.startsWith(`${DEVICE_PREFIX}/`)) return 'device'
  return path === '/mcp' ? 'mcp' : 'pages'
}
