// Flags that select requests.
import { LIMITS } from '../../inspector/api.ts'
import { UsageError } from '../errors.ts'
import type { Query } from './recorders.ts'

export interface FilterInput {
  method: string | undefined
  status: string | undefined
  path: string | undefined
  name: string | undefined
  since: string | undefined
  search: string | undefined
}

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

export const toQuery = ({ method, status, path, name, since, search }: FilterInput): Query => ({
  method,
  status,
  path,
  search,
  tunnel: name,
  since: since === undefined ? undefined : readSince(since),
})

/** A time, or how long ago: `10m`. */
function readSince(text: string): string {
  const [, amount, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  const time = amount === undefined ? Date.parse(text) : Date.now() - Number(amount) * (UNITS[unit] ?? 0)
  if (Number.isNaN(time))
    throw new UsageError(`Invalid --since "${text}" (expected e.g. 30s, 10m, 2h, or a time).`)
  return new Date(time).toISOString()
}

export function readLimit(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > LIMITS.pageSize)
    throw new UsageError(`Invalid --limit "${text}" (expected 1 to ${LIMITS.pageSize}).`)
  return text
}
