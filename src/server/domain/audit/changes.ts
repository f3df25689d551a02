// What an action has changed, for the audit log: fields with their values before and after. Callers name the
// fields one by one, so that no secret gets into the log.
import { isIP } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import type { Changes, ChangeValue } from '../../../contract/dashboard/audit.ts'

export type { Changes }

const TEXT_CHARS_MAX = 300
const ITEMS_MAX = 50
const ELLIPSIS = '…'

/** The fields of `after` that differ from `before`; all of them without `before`. */
export function changesBetween<T extends Record<string, ChangeValue>>(
  before: { [K in keyof T]?: ChangeValue } | null,
  after: T,
): Changes {
  const changes: Changes = {}
  for (const [field, value] of Object.entries(after)) {
    const old = before?.[field] ?? null
    if (JSON.stringify(old) !== JSON.stringify(value)) changes[field] = [old, value]
  }
  return changes
}

/** Null if nothing has changed. Long values are cut. */
export function serializeChanges(changes: Changes = {}): string | null {
  const bounded = Object.entries(changes).map(([field, [before, after]]) => [
    field,
    [boundValue(before), boundValue(after)],
  ])
  return bounded.length === 0 ? null : JSON.stringify(Object.fromEntries(bounded))
}

/**
 * The changes of two entries as one: the first value before and the last value after. Undefined if they are
 * neither equal nor a chain, in which each field begins with the value that it had after the first: then the
 * second entry would hide something.
 */
export function mergeChanges(first: Changes, second: Changes): Changes | undefined {
  if (isDeepStrictEqual(first, second)) return first
  const fields = Object.keys(first)
  const isChain =
    fields.length === Object.keys(second).length &&
    fields.every((field) => isDeepStrictEqual(first[field]?.[1], second[field]?.[0]))
  if (!isChain) return undefined
  return Object.fromEntries(
    Object.entries(second).map(([field, [, after]]) => [field, [first[field]?.[0] ?? null, after]]),
  )
}

export const parseChanges = (text: string | null): Changes => (text === null ? {} : JSON.parse(text))

/** For members, who see no addresses of others: without the fields that have one, e.g. `deviceAddress`. */
export const withoutAddresses = (changes: Changes): Changes =>
  Object.fromEntries(Object.entries(changes).filter(([, values]) => !values.some(isAddress)))

const isAddress = (value: ChangeValue) => typeof value === 'string' && isIP(value) !== 0

function boundValue(value: ChangeValue): ChangeValue {
  if (typeof value === 'string') return truncate(value)
  if (value === null || typeof value !== 'object') return value
  const items = value.slice(0, ITEMS_MAX).map(truncate)
  return items.length < value.length ? [...items, ELLIPSIS] : items
}

const truncate = (text: string) =>
  text.length <= TEXT_CHARS_MAX ? text : text.slice(0, TEXT_CHARS_MAX) + ELLIPSIS
