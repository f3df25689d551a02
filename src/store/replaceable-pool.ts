// A pool of connections that is exchanged for a fresh one, under those who use it, when its connections are suspects.
import type pg from 'pg'

/** Whoever waits for an answer on a suspect gets that much longer: it may be slow, and not lost. */
const SUSPECT_MS = 2_000

export interface ClientPool {
  readonly options: object
  connect(): Promise<pg.PoolClient>
  end(): Promise<void>
}

export interface ReplaceablePool extends ClientPool {
  replace(): void
}

interface Generation {
  readonly pool: pg.Pool
  readonly lent: Set<pg.PoolClient>
  /** For each who waits for a connection: to be called when none will come. */
  readonly waiting: Set<() => void>
}

export function createReplaceablePool(open: () => pg.Pool): ReplaceablePool {
  function begin(): Generation {
    const pool = open()
    const lent = new Set<pg.PoolClient>()
    pool.on('acquire', (client) => lent.add(client))
    pool.on('release', (_error, client) => lent.delete(client))
    return { pool, lent, waiting: new Set() }
  }
  let current = begin()

  async function connect(): Promise<pg.PoolClient> {
    const { pool, waiting } = current
    const asked = pool.connect()
    const exchanged = Promise.withResolvers<undefined>()
    const giveUp = () => exchanged.resolve(undefined)
    waiting.add(giveUp)
    try {
      const client = await Promise.race([asked, exchanged.promise])
      if (client) return client
    } finally {
      waiting.delete(giveUp)
    }
    asked.then(
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
    replace() {
      const { pool, lent, waiting } = current
      current = begin()
      // A pool that is ended closes what is idle, and leaves those who wait for a connection to wait in vain.
      void pool.end().catch(() => {})
      for (const giveUp of waiting) giveUp()
      const cut = setTimeout(() => {
        for (const client of lent) void (client as pg.Client).end().catch(() => {})
      }, SUSPECT_MS)
      cut.unref()
    },
  }
}
