// better-auth database adapter on the store. Reads use the store's reader; writes run in a transaction of
// their own, or in the one around the call. Times are milliseconds, flags 0 or 1, and session tokens are
// stored as hashes.
import { AsyncLocalStorage } from 'node:async_hooks'
import { hash } from 'node:crypto'
import { type CleanedWhere, type CustomAdapter, createAdapterFactory } from 'better-auth/adapters'
import { type Expression, type ExpressionBuilder, type Kysely, type SqlBool, sql } from 'kysely'
import type { Db, Store, Tx } from '../store/store.ts'

// biome-ignore lint/suspicious/noExplicitAny: better-auth names tables and columns at run time
type Any = any
type Tables = Record<string, Record<string, Any>>

const SESSIONS = 'sessions'

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

const hashOf = (token: unknown) => hash('sha256', String(token), 'hex')

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
    adapter: ({ getFieldName }) => queries(store, getFieldName),
  })

function queries(
  store: Store,
  getFieldName: (of: { model: string; field: string }) => string,
): CustomAdapter {
  const reading = () => ambientDb(store) as unknown as Kysely<Tables>
  const writing = <T>(work: (db: Kysely<Tables>) => Promise<T>): Promise<T> => {
    const db = calls.getStore()?.db
    return recordingFailure(db ? work(db as never) : store.transaction((own) => work(own as never)))
  }
  const first = (db: Kysely<Tables>, model: string, where: CleanedWhere[]) =>
    db.selectFrom(model).select('id').where(conditions(model, where)).limit(1)

  return {
    create: ({ model, data }) =>
      writing(async (db) => {
        const row = model === SESSIONS ? { ...data, token: hashOf(data.token) } : data
        const made = await db.insertInto(model).values(row).returningAll().executeTakeFirstOrThrow()
        return withToken(made, data.token) as Any
      }),
    async findOne({ model, where, select }) {
      const query = reading().selectFrom(model).where(conditions(model, where)).limit(1)
      const columns = select?.map((field) => getFieldName({ model, field }))
      const chosen = columns?.length ? query.select(columns) : query.selectAll()
      const row = await recordingFailure(chosen.executeTakeFirst())
      return withToken(row, tokenIn(model, where)) as Any
    },
    async findMany({ model, where = [], limit, offset, sortBy }) {
      let query = reading().selectFrom(model).selectAll().where(conditions(model, where)).limit(limit)
      if (sortBy) query = query.orderBy(getFieldName({ model, field: sortBy.field }), sortBy.direction)
      if (offset) query = query.offset(offset)
      return (await recordingFailure(query.execute())) as Any[]
    },
    async count({ model, where = [] }) {
      const query = reading().selectFrom(model).where(conditions(model, where))
      const counted = query.select((row) => row.fn.countAll().as('rows'))
      const { rows } = await recordingFailure(counted.executeTakeFirstOrThrow())
      return Number(rows)
    },
    update: ({ model, where, update }) =>
      writing(async (db) => {
        const query = db
          .updateTable(model)
          .set(update as Any)
          .where(conditions(model, where))
        return withToken(await query.returningAll().executeTakeFirst(), tokenIn(model, where)) as Any
      }),
    updateMany: ({ model, where, update }) =>
      writing(async (db) => {
        const query = db.updateTable(model).set(update).where(conditions(model, where))
        return Number((await query.executeTakeFirst()).numUpdatedRows)
      }),
    delete: ({ model, where }) =>
      writing(async (db) => {
        await db.deleteFrom(model).where(conditions(model, where)).execute()
      }),
    deleteMany: ({ model, where }) =>
      writing(async (db) =>
        Number(
          (await db.deleteFrom(model).where(conditions(model, where)).executeTakeFirst()).numDeletedRows,
        ),
      ),
    consumeOne: ({ model, where }) =>
      writing(async (db) => {
        const query = db.deleteFrom(model).where('id', 'in', first(db, model, where))
        return ((await query.returningAll().executeTakeFirst()) ?? null) as Any
      }),
    incrementOne: ({ model, where, increment, set }) =>
      writing(async (db) => {
        const values: Record<string, unknown> = { ...set }
        for (const [field, by] of Object.entries(increment)) values[field] = sql`${sql.ref(field)} + ${by}`
        const query = db
          .updateTable(model)
          .set(values)
          .where('id', 'in', first(db, model, where))
        return ((await query.where(conditions(model, where)).returningAll().executeTakeFirst()) ??
          null) as Any
      }),
  }
}

const OPERATORS = {
  eq: '=',
  ne: '!=',
  lt: '<',
  lte: '<=',
  gt: '>',
  gte: '>=',
  in: 'in',
  not_in: 'not in',
} as const

/** Conditions with the connector OR form one group; all others must be true. */
const conditions =
  (model: string, where: CleanedWhere[]) =>
  (row: ExpressionBuilder<Tables, string>): Expression<SqlBool> => {
    const all = where.map((given) => ({
      isOr: given.connector === 'OR',
      expression: condition(row, model, given),
    }))
    const anyOf = all.filter(({ isOr }) => isOr).map(({ expression }) => expression)
    const allOf = all.filter(({ isOr }) => !isOr).map(({ expression }) => expression)
    return row.and(anyOf.length > 0 ? [...allOf, row.or(anyOf)] : allOf)
  }

function condition(
  row: ExpressionBuilder<Tables, string>,
  model: string,
  given: CleanedWhere,
): Expression<SqlBool> {
  const { field, operator = 'eq' } = given
  const value = model === SESSIONS && field === 'token' ? hashed(given.value) : given.value
  if (value === null) return row(field, operator === 'eq' ? 'is' : 'is not', null)
  if (!(operator in OPERATORS)) throw new Error(`Operator "${operator}" of better-auth is not supported.`)
  const column = given.mode === 'insensitive' ? sql`lower(${sql.ref(field)})` : field
  return row(column as string, OPERATORS[operator as keyof typeof OPERATORS], value)
}

const hashed = (value: CleanedWhere['value']) => (Array.isArray(value) ? value.map(hashOf) : hashOf(value))

/** Restores the raw token in a result, which better-auth expects; the caller knows it already. */
const withToken = (row: object | undefined, token: unknown) =>
  row && token !== undefined && 'token' in row ? { ...row, token } : (row ?? null)

const tokenIn = (model: string, where: CleanedWhere[]) =>
  model === SESSIONS
    ? where.find(({ field, operator }) => field === 'token' && operator === 'eq')?.value
    : undefined
