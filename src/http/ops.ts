// What load balancers and supervisors ask.
import type { FastifyInstance } from 'fastify'
import { opsOperations } from '../contract/ops.ts'
import { Fault } from '../domain/fault.ts'
import type { Store } from '../store/store.ts'
import { mountSurface } from './surface.ts'

export function mountOps(server: FastifyInstance, store: Store, isStopping: () => boolean): void {
  mountSurface(
    server,
    opsOperations,
    {
      'health.read': () => ({ status: 'ok' as const }),
      'readiness.read': async () => {
        if (isStopping())
          throw new Fault('unavailable', { message: 'This node is stopping.', retryAfterS: 1 })
        await store.ping()
        return { status: 'ready' as const }
      },
    },
    { prefix: '', basePath: '', admit: async () => undefined },
  )
}
