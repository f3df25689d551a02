// better-auth database adapter on the store. Reads use the store's reader; writes run in a transaction of
// their own, or in the one around the call. Times are milliseconds and flags 0 or 1.
import { AsyncLocalStorage } from 'node:async_hooks'
import { type CleanedWhere, type CustomAdapter, createAdapterFactory } from 'better-auth/adapters'
import { type Kysely, sql } from 'kysely'
import type { Db, Store, Tx } from '../store/engine/store.ts'
import { type Any, conditions, storedValues, type Tables, tokenIn, withToken } from './adapter-values.ts'

/** Context of a call to better-auth: the transaction of its writes, and the first database error. */
interface Call {
  db?: Tx
  failure?: unknown
}

const calls = new AsyncLocalStorage<Call>()

/** Runs `work` so that all writes of better-auth use this transaction. */
export const withTransaction = <T>(db: Tx, work: () => Promise<T>): Promise<T> => calls.run({ db }, work)

/** For reads during a call to better-auth: the transaction around it, if any. */
export const ambientDb = (store: Store): Db => calls.getStore()?.db ?? store.db

/** better-auth replaces errors with its own; this rethrows the original database error. */
export async function rethrowDatabaseErrors<T>(work: () => Promise<T>): Promise<T> {
  const { db } = calls.getStore() ?? {}
  const call: Call = db ? { db } : {}
  let result: T | undefined
  let error: unknown
  try {
    result = await calls.run(call, work)
  } catch (thrown) {
    error = thrown
  }
  if (call.failure !== undefined) throw call.failure
  if (error !== undefined) throw new BetterAuthError('better-auth failed', { cause: error })
  return result as T
}

/** An error inside better-auth that is not a database error. */
export class BetterAuthError extends Error {
  override name = 'BetterAuthError'
}

/** Records the error of a failed query for `rethrowDatabaseErrors`. */
async function recordingFailure<T>(query: Promise<T>): Promise<T> {
  try {
    return await query
  } catch (error) {
    const call = calls.getStore()
    if (call) call.failure ??= error
    throw error
  }
}

export const storeAdapter = (store: Store) =>
  createAdapterFactory({
    config: {
      adapterId: 'adit',
      adapterName: 'Adit store',
      supportsDates: true,
      supportsBooleans: false,
      supportsJSON: false,
      transaction: false,
      customTransformInput: ({ data }) => (data instanceof Date ? data.getTime() : data),
      customTransformOutput: ({ data, fieldAttributes }) =>
        fieldAttributes.type === 'date' && typeof data === 'number' ? new Date(data) : data,
    },
    adapter: ({ getFieldName }) => ({ ...reads(store, getFieldName), ...writes(store) }),
  })

type FieldName = (of: { model: string; field: string }) => string

function reads(store: Store, getFieldName: FieldName): Pick<CustomAdapter, 'findOne' | 'findMany' | 'count'> {
  const select = (model: string, where: CleanedWhere[]) =>
    (ambientDb(store) as unknown as Kysely<Tables>).selectFrom(model).where(conditions(model, where))

  return {
    async findOne({ model, where, select: fields }) {
      const query = select(model, where).limit(1)
      const columns = fields?.map((field) => getFieldName({ model, field }))
      const selected = columns?.length ? query.select(columns) : query.selectAll()
      const row = await recordingFailure(selected.executeTakeFirst())
      return withToken(row, tokenIn(model, where)) as Any
    },
    async findMany({ model, where = [], limit, offset, sortBy }) {
      let query = select(model, where).selectAll().limit(limit)
      if (sortBy) query = query.orderBy(getFieldName({ model, field: sortBy.field }), sortBy.direction)
      if (offset) query = query.offset(offset)
      return (await recordingFailure(query.execute())) as Any[]
    },
    async count({ model, where = [] }) {
      const query = select(model, where).select((row) => row.fn.countAll().as('rows'))
      const { rows } = await recordingFailure(query.executeTakeFirstOrThrow())
      return Number(rows)
    },
  }
}

function writes(store: Store): Omit<CustomAdapter, keyof ReturnType<typeof reads>> {
  const inTransaction = <T>(work: (db: Kysely<Tables>) => Promise<T>): Promise<T> => {
    const db = calls.getStore()?.db
    return recordingFailure(db ? work(db as never) : store.transaction((own) => work(own as never)))
  }
  const firstId = (db: Kysely<Tables>, model: string, where: CleanedWhere[]) =>
    db.selectFrom(model).select('id').where(conditions(model, where)).limit(1)

  return {
    create: ({ model, data }) =>
      inTransaction(async (db) => {
        const query = db.insertInto(model).values(storedValues(model, data)).returningAll()
        return withToken(await query.executeTakeFirstOrThrow(), data.token) as Any
      }),
    update: ({ model, where, update }) =>
      inTransaction(async (db) => {
        const values = storedValues(model, update as object)
        const query = db.updateTable(model).set(values).where(conditions(model, where)).returningAll()
        return withToken(await query.executeTakeFirst(), tokenIn(model, where)) as Any
      }),
    updateMany: ({ model, where, update }) =>
      inTransaction(async (db) => {
        const query = db.updateTable(model).set(storedValues(model, update)).where(conditions(model, where))
        return Number((await query.executeTakeFirst()).numUpdatedRows)
      }),
    delete: ({ model, where }) =>
      inTransaction(async (db) => {
        await db.deleteFrom(model).where(conditions(model, where)).execute()
      }),
    deleteMany: ({ model, where }) =>
      inTransaction(async (db) => {
        const query = db.deleteFrom(model).where(conditions(model, where))
        return Number((await query.executeTakeFirst()).numDeletedRows)
      }),
    consumeOne: ({ model, where }) =>
      inTransaction(async (db) => {
        const query = db
          .deleteFrom(model)
          .where('id', 'in', firstId(db, model, where))
          .returningAll()
        return ((await query.executeTakeFirst()) ?? null) as Any
      }),
    incrementOne: ({ model, where, increment, set }) =>
      inTransaction(async (db) => {
        const values = storedValues(model, set ?? {})
        for (const [field, by] of Object.entries(increment)) values[field] = sql`${sql.ref(field)} + ${by}`
        const query = db
          .updateTable(model)
          .set(values)
          .where('id', 'in', firstId(db, model, where))
        return ((await query.where(conditions(model, where)).returningAll().executeTakeFirst()) ??
          null) as Any
      }),
  }
}
