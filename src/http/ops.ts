// What load balancers and supervisors ask.
import type { FastifyInstance } from 'fastify'
import { opsOperations } from '../contract/ops.ts'
import { Fault } from '../domain/fault.ts'
import { mountSurface } from './surface.ts'

export interface OpsOptions {
  isStopping: () => boolean
  /** Rejects while the database does not answer or cannot be written. */
  ping: () => Promise<void>
}

export function mountOps(server: FastifyInstance, { isStopping, ping }: OpsOptions): void {
  mountSurface(
    server,
    opsOperations,
    {
      'health.read': () => ({ status: 'ok' as const }),
      'readiness.read': async () => {
        if (isStopping())
          throw new Fault('unavailable', { message: 'This node is stopping.', retryAfterS: 1 })
        await ping()
        return { status: 'ready' as const }
      },
    },
    { prefix: '', baseUrl: undefined, admit: async () => undefined },
  )
}
