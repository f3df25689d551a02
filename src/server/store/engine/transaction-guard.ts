// Rejects queries on another connection inside a transaction. They would not see its writes, would lock
// nothing, and could deadlock on the pool. Types cannot prevent that, because callers of `transaction` also
// have the store in scope.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Dialect } from 'kysely'

const scopes = new AsyncLocalStorage<{ isOpen: boolean }>()

/** Runs the work of a transaction. Asynchronous work that outlives it may use other connections again. */
export async function runInTransactionScope<T>(work: () => Promise<T>): Promise<T> {
  const scope = { isOpen: true }
  try {
    return await scopes.run(scope, work)
  } finally {
    scope.isOpen = false
  }
}

/** A transaction has its connection already, so acquiring another one inside it is a bug. */
export function guardConnections(dialect: Dialect): Dialect {
  return {
    createAdapter: () => dialect.createAdapter(),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
    createDriver() {
      const driver = dialect.createDriver()
      const acquire = driver.acquireConnection.bind(driver)
      driver.acquireConnection = async (options) => {
        if (scopes.getStore()?.isOpen)
          throw new Error(
            'Query outside the current transaction. Use the Tx passed to the transaction callback.',
          )
        return acquire(options)
      }
      return driver
    },
  }
}
