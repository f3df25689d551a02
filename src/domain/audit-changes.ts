// What an action has changed, for the audit log: fields with their values before and after. Callers name the
// fields one by one, so that no secret gets into the log.
import { isIP } from 'node:net'
import type { Changes, ChangeValue } from '../contract/dashboard/audit.ts'

export type { Changes }

const TEXT_CHARS_MAX = 300
const ITEMS_MAX = 50
const CUT = '…'

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

export const parseChanges = (text: string | null): Changes => (text === null ? {} : JSON.parse(text))

/** For members, who see no addresses of others: without the fields that have one, e.g. `deviceAddress`. */
export const withoutAddresses = (changes: Changes): Changes =>
  Object.fromEntries(Object.entries(changes).filter(([, values]) => !values.some(isAddress)))

const isAddress = (value: ChangeValue) => typeof value === 'string' && isIP(value) !== 0

function boundValue(value: ChangeValue): ChangeValue {
  if (typeof value === 'string') return cut(value)
  if (value === null || typeof value !== 'object') return value
  const items = value.slice(0, ITEMS_MAX).map(cut)
  return items.length < value.length ? [...items, CUT] : items
}

const cut = (text: string) => (text.length <= TEXT_CHARS_MAX ? text : text.slice(0, TEXT_CHARS_MAX) + CUT)
