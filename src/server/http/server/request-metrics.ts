// Gives each route its metric when the route is registered.
import type { FastifyInstance } from 'fastify'
import type { OperationDurations, RequestDurations } from '../../../lib/metrics/request-durations.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Undefined for streams, whose duration is that of the connection. */
    durations?: OperationDurations
  }
}

/** Must be called before routes are registered. */
export function attachDurations(server: FastifyInstance, requests: RequestDurations): void {
  server.addHook('onRoute', (route) => {
    const { operation, surface = 'pages' } = route.config ?? {}
    if (operation?.response.stream) return
    const name = operation?.id ?? (surface === 'pages' ? 'page' : route.url)
    route.config = { ...route.config, durations: requests.of(surface, name) }
  })
}
