// Refuses queries on another connection inside a transaction. They would see the database as it was before, hold nothing
// that they read, and could wait for a connection that only the end of this transaction frees. Types cannot tell: whoever
// calls `transaction` has the store at hand.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Dialect } from 'kysely'

const scopes = new AsyncLocalStorage<{ isOpen: boolean }>()

/** Runs the work of a transaction; what it begins and leaves to run on is free again afterwards. */
export async function runGuarded<T>(work: () => Promise<T>): Promise<T> {
  const scope = { isOpen: true }
  try {
    return await scopes.run(scope, work)
  } finally {
    scope.isOpen = false
  }
}

/** The work of a transaction already has its connection, so whoever acquires one there is beside it. */
export function guarded(dialect: Dialect): Dialect {
  return {
    createAdapter: () => dialect.createAdapter(),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
    createDriver() {
      const driver = dialect.createDriver()
      const acquire = driver.acquireConnection.bind(driver)
      driver.acquireConnection = async (options) => {
        if (scopes.getStore()?.isOpen)
          throw new Error('A query beside the transaction was made inside a transaction. Use the one given.')
        return acquire(options)
      }
      return driver
    },
  }
}
