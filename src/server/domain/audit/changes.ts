// Changes of an action for the audit log: fields with their values before and after. Callers name the fields
// one by one, so that no secret gets into the log.
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

/** Null if nothing has changed. Truncates long values. */
export function serializeChanges(changes: Changes = {}): string | null {
  const bounded = Object.entries(changes).map(([field, [before, after]]) => [
    field,
    [boundValue(before), boundValue(after)],
  ])
  return bounded.length === 0 ? null : JSON.stringify(Object.fromEntries(bounded))
}

/**
 * Merges the changes of two entries: the first value before and the last value after. Undefined if that would
 * hide a value: the changes are not equal, and the second does not start where the first ended.
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

/** Removes fields with an address, e.g. `deviceAddress`, for members, who must not see those of others. */
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
