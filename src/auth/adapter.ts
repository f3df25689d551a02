// better-auth's tables on our store: it reads on the reading connection and writes in our transactions, or in the one
// that surrounds the call. Times are milliseconds, flags 0 or 1, and of a session's token only the hash is kept.
import { AsyncLocalStorage } from 'node:async_hooks'
import { hash } from 'node:crypto'
import { type CleanedWhere, type CustomAdapter, createAdapterFactory } from 'better-auth/adapters'
import { type Expression, type ExpressionBuilder, type Kysely, type SqlBool, sql } from 'kysely'
import type { Db, Store, Tx } from '../store/store.ts'

// biome-ignore lint/suspicious/noExplicitAny: the tables and columns are named by better-auth, at run time
type Any = any
type Tables = Record<string, Record<string, Any>>

const SESSIONS = 'sessions'

/** Around a call of better-auth: the transaction that its writes belong to, and what the database failed with. */
interface Call {
  db?: Tx
  failure?: unknown
}

const calls = new AsyncLocalStorage<Call>()

/** Whatever better-auth writes meanwhile is part of this transaction. */
export const within = <T>(db: Tx, work: () => Promise<T>): Promise<T> => calls.run({ db }, work)

/** Where to read during a call of better-auth: in the transaction around it, where there is one. */
export const readingIn = (store: Store): Db => calls.getStore()?.db ?? store.db

/** better-auth turns every failure into one of its own; what the database really said is thrown instead. */
export async function unmasked<T>(work: () => Promise<T>): Promise<T> {
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
  if (error !== undefined) throw new AuthFailed('better-auth failed', { cause: error })
  return result as T
}

/** Something inside better-auth went wrong that was not the database. */
export class AuthFailed extends Error {
  override name = 'AuthFailed'
}

/** Remembers what a query failed with. */
async function noted<T>(query: Promise<T>): Promise<T> {
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
      adapterName: 'Adit’s store',
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
  const reading = () => readingIn(store) as unknown as Kysely<Tables>
  const writing = <T>(work: (db: Kysely<Tables>) => Promise<T>): Promise<T> => {
    const db = calls.getStore()?.db
    return noted(db ? work(db as never) : store.transaction((own) => work(own as never)))
  }
  const first = (db: Kysely<Tables>, model: string, where: CleanedWhere[]) =>
    db.selectFrom(model).select('id').where(conditions(model, where)).limit(1)

  return {
    create: ({ model, data }) =>
      writing(async (db) => {
        const row = model === SESSIONS ? { ...data, token: hashOf(data.token) } : data
        const made = await db.insertInto(model).values(row).returningAll().executeTakeFirstOrThrow()
        return shown(made, data.token) as Any
      }),
    async findOne({ model, where, select }) {
      const query = reading().selectFrom(model).where(conditions(model, where)).limit(1)
      const columns = select?.map((field) => getFieldName({ model, field }))
      const chosen = columns?.length ? query.select(columns) : query.selectAll()
      const row = await noted(chosen.executeTakeFirst())
      return shown(row, askedToken(model, where)) as Any
    },
    async findMany({ model, where = [], limit, offset, sortBy }) {
      let query = reading().selectFrom(model).selectAll().where(conditions(model, where)).limit(limit)
      if (sortBy) query = query.orderBy(getFieldName({ model, field: sortBy.field }), sortBy.direction)
      if (offset) query = query.offset(offset)
      return (await noted(query.execute())) as Any[]
    },
    async count({ model, where = [] }) {
      const query = reading().selectFrom(model).where(conditions(model, where))
      const counted = query.select((row) => row.fn.countAll().as('rows'))
      const { rows } = await noted(counted.executeTakeFirstOrThrow())
      return Number(rows)
    },
    update: ({ model, where, update }) =>
      writing(async (db) => {
        const query = db
          .updateTable(model)
          .set(update as Any)
          .where(conditions(model, where))
        return shown(await query.returningAll().executeTakeFirst(), askedToken(model, where)) as Any
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

/** Those joined by OR are one group, all others must hold. */
const conditions =
  (model: string, where: CleanedWhere[]) =>
  (row: ExpressionBuilder<Tables, string>): Expression<SqlBool> => {
    const all = where.map((given) => ({
      isOr: given.connector === 'OR',
      holds: condition(row, model, given),
    }))
    const either = all.filter(({ isOr }) => isOr).map(({ holds }) => holds)
    const both = all.filter(({ isOr }) => !isOr).map(({ holds }) => holds)
    return row.and(either.length > 0 ? [...both, row.or(either)] : both)
  }

function condition(
  row: ExpressionBuilder<Tables, string>,
  model: string,
  given: CleanedWhere,
): Expression<SqlBool> {
  const { field, operator = 'eq' } = given
  const value = model === SESSIONS && field === 'token' ? hashed(given.value) : given.value
  if (value === null) return row(field, operator === 'eq' ? 'is' : 'is not', null)
  if (!(operator in OPERATORS)) throw new Error(`better-auth asks for "${operator}", which is not foreseen.`)
  const column = given.mode === 'insensitive' ? sql`lower(${sql.ref(field)})` : field
  return row(column as string, OPERATORS[operator as keyof typeof OPERATORS], value)
}

const hashed = (value: CleanedWhere['value']) => (Array.isArray(value) ? value.map(hashOf) : hashOf(value))

/** Whoever asks by a token knows it, and better-auth expects to see it again. */
const shown = (row: object | undefined, token: unknown) =>
  row && token !== undefined && 'token' in row ? { ...row, token } : (row ?? null)

const askedToken = (model: string, where: CleanedWhere[]) =>
  model === SESSIONS
    ? where.find(({ field, operator }) => field === 'token' && operator === 'eq')?.value
    : undefined
