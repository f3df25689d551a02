// Health and readiness checks for load balancers and supervisors.
import type { FastifyInstance } from 'fastify'
import { apis } from '../../../contract/apis.ts'
import { Fault, readinessFault } from '../../domain/fault.ts'
import { registerOperations } from '../operations/routes.ts'

interface HealthOptions {
  /** False from the announcement that this node stops. */
  isReady: () => boolean
  /** Rejects while the database is unreachable or not writable. */
  ping: () => Promise<void>
}

export function registerHealth(server: FastifyInstance, { isReady, ping }: HealthOptions): void {
  registerOperations(
    server,
    apis.health,
    {
      'health.read': () => ({ status: 'ok' as const }),
      'readiness.read': async () => {
        if (!isReady()) throw new Fault('unavailable', { message: 'This node is stopping.', retryAfterS: 1 })
        await ping().catch((error: unknown) => {
          throw readinessFault(error)
        })
        return { status: 'ready' as const }
      },
    },
    { baseUrl: undefined, authenticate: async () => undefined },
  )
}
