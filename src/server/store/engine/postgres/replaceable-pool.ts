// A connection pool that can be replaced while in use, when its connections may be dead.
import type pg from 'pg'

/** Grace period for queries in progress on a replaced pool: the database may only be slow. */
const GRACE_MS = 2_000

export interface ClientPool {
  readonly options: object
  connect(): Promise<pg.PoolClient>
  end(): Promise<void>
}

/** Numbers of connections, and of callers that wait for one. */
export interface PoolUse {
  used: number
  idle: number
  max: number
  waiting: number
}

interface ReplaceablePool extends ClientPool {
  replace(): void
  use(): PoolUse
}

interface Generation {
  readonly pool: pg.Pool
  readonly checkedOut: Set<pg.PoolClient>
  /** A callback for each caller that waits for a connection, which makes it retry on the next pool. */
  readonly waiting: Set<() => void>
}

export function createReplaceablePool(open: () => pg.Pool): ReplaceablePool {
  function openGeneration(): Generation {
    const pool = open()
    const checkedOut = new Set<pg.PoolClient>()
    pool.on('acquire', (client) => checkedOut.add(client))
    pool.on('release', (_error, client) => checkedOut.delete(client))
    return { pool, checkedOut, waiting: new Set() }
  }
  let current = openGeneration()

  async function connect(): Promise<pg.PoolClient> {
    const { pool, waiting } = current
    const pending = pool.connect()
    const replaced = Promise.withResolvers<undefined>()
    const retry = () => replaced.resolve(undefined)
    waiting.add(retry)
    try {
      const client = await Promise.race([pending, replaced.promise])
      if (client) return client
    } finally {
      waiting.delete(retry)
    }
    pending.then(
      (late) => late.release(true),
      () => {},
    )
    return connect()
  }

  return {
    connect,
    get options() {
      return current.pool.options
    },
    end: () => current.pool.end(),
    use() {
      const { pool, checkedOut } = current
      const { idleCount: idle, waitingCount: waiting } = pool
      return { used: checkedOut.size, idle, max: pool.options.max, waiting }
    },
    replace() {
      const { pool, checkedOut, waiting } = current
      current = openGeneration()
      // Ending a pool closes idle clients, and never settles the callers that wait for one.
      void pool.end().catch(() => {})
      for (const retry of waiting) retry()
      const forceCloseTimer = setTimeout(() => {
        for (const client of checkedOut) void (client as pg.Client).end().catch(() => {})
      }, GRACE_MS)
      forceCloseTimer.unref()
    },
  }
}
