// Values and conditions of better-auth as SQL. Session tokens are stored and compared as hashes.
import type { CleanedWhere } from 'better-auth/adapters'
import { type Expression, type ExpressionBuilder, type SqlBool, sql } from 'kysely'
import { hashSecret } from '../../lib/credentials/secret.ts'

// biome-ignore lint/suspicious/noExplicitAny: better-auth names tables and columns at run time
export type Any = any
export type Tables = Record<string, Record<string, Any>>

const isSessionToken = (model: string, field: string) => model === 'sessions' && field === 'token'

function storedValue(model: string, field: string, value: unknown): unknown {
  if (!isSessionToken(model, field)) return value
  return Array.isArray(value) ? value.map((token) => hashSecret(String(token))) : hashSecret(String(value))
}

export const storedValues = (model: string, values: object): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(values).map(([field, value]) => [field, storedValue(model, field, value)]),
  )

/** Restores the raw token in a result, which better-auth expects; the caller knows it already. */
export const withToken = (row: object | undefined, token: unknown) =>
  row && token !== undefined && 'token' in row ? { ...row, token } : (row ?? null)

/** The session token that the conditions ask for, if any. */
export const tokenIn = (model: string, where: CleanedWhere[]) =>
  where.find(({ field, operator }) => isSessionToken(model, field) && operator === 'eq')?.value

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
export const conditions =
  (model: string, where: CleanedWhere[]) =>
  (row: ExpressionBuilder<Tables, string>): Expression<SqlBool> => {
    const anyOf: Expression<SqlBool>[] = []
    const allOf: Expression<SqlBool>[] = []
    for (const input of where) (input.connector === 'OR' ? anyOf : allOf).push(condition(row, model, input))
    return row.and(anyOf.length > 0 ? [...allOf, row.or(anyOf)] : allOf)
  }

function condition(
  row: ExpressionBuilder<Tables, string>,
  model: string,
  { field, operator = 'eq', mode, value }: CleanedWhere,
): Expression<SqlBool> {
  if (!(operator in OPERATORS)) throw new Error(`Operator "${operator}" of better-auth is not supported.`)
  if (value === null && operator === 'eq') return row(field, 'is', null)
  if (value === null && operator === 'ne') return row(field, 'is not', null)
  const isInsensitive = mode === 'insensitive'
  const column = isInsensitive ? sql`lower(${sql.ref(field)})` : field
  const stored = storedValue(model, field, value)
  return row(
    column as string,
    OPERATORS[operator as keyof typeof OPERATORS],
    isInsensitive ? lower(stored) : stored,
  )
}

function lower(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(lower)
  return typeof value === 'string' ? value.toLowerCase() : value
}
