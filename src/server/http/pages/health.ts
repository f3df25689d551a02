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
  areCommitsBlocked: () => boolean | undefined
  /** False if the node may verify no key. */
  mayRead: () => boolean
}

const PRIMARY_UNCONFIRMED =
  'No standby confirms that the database is still the primary (ADIT_FENCING=strict).'

const COMMITS_BLOCKED =
  'The database does not confirm commits: writes get 503. Check whether its synchronous standby is connected.'

export function registerHealth(server: FastifyInstance, options: HealthOptions): void {
  const { isReady, ping, areCommitsBlocked, mayRead } = options
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
        if (!mayRead()) throw new Fault('unavailable', { message: PRIMARY_UNCONFIRMED, retryAfterS: 1 })
        return { status: 'ready' as const, ...(areCommitsBlocked() && { degraded: COMMITS_BLOCKED }) }
      },
    },
    { baseUrl: undefined, authenticate: async () => undefined },
  )
}
