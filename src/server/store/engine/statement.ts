// Statements that run often. Each is built and compiled once, because that takes longer than sending it.
// PostgreSQL also parses and plans it only once per connection.
import { type CompiledQuery, type RawBuilder, type SqlBool, sql } from 'kysely'
import { isPostgres } from './bulk.ts'
import { prepareOnPostgres, WITHOUT_FLUSH } from './postgres/connection.ts'
import type { Db, Tx, UnflushedUpdate } from './store.ts'

/** Stands for a value that each execution provides. */
class Placeholder {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

/** A proxy that does not list its members: read them by name, without a rest pattern. */
export type Placeholders<V> = { readonly [K in keyof V]: RawBuilder<V[K]> }

interface Query<D, R> {
  compile(db: D): CompiledQuery<R>
}

type Builder<D, V, Q> = (db: D, values: Placeholders<V>) => Q

/**
 * Select columns by name, not all of them: PostgreSQL rejects a prepared statement whose columns have changed
 * since.
 */
export function statement<D extends Db, V extends object, R>(
  build: Builder<D, V, Query<D, R>>,
): (db: D, values: V) => Promise<R[]> {
  /** The query as it is compiled for each engine. */
  const compiled = new Map<boolean, CompiledQuery<R>>()
  function compile(db: D): CompiledQuery<R> {
    const query = build(db, placeholders as Placeholders<V>).compile(db)
    if (isPostgres(db)) prepareOnPostgres(query.sql)
    compiled.set(isPostgres(db), query)
    return query
  }
  return async (db, values) => {
    const query = compiled.get(isPostgres(db)) ?? compile(db)
    const parameters = query.parameters.map((each) =>
      each instanceof Placeholder ? values[each.name as keyof V] : each,
    )
    return (await db.executeQuery<R>({ ...query, parameters })).rows
  }
}

const placeholders = new Proxy({}, { get: (_, name) => sql.val(new Placeholder(String(name))) })

interface Update<R> extends Query<Tx, R> {
  where(condition: RawBuilder<SqlBool>): Update<R>
}

/** For `DatabaseConnection.updateUnflushed`. */
export const unflushedUpdate = <V extends object, R>(
  build: Builder<Tx, V, Update<R>>,
): UnflushedUpdate<V, R> => ({
  unflushed: statement((db: Tx, values: Placeholders<V>) => build(db, values).where(WITHOUT_FLUSH)),
  flushed: statement(build),
})
