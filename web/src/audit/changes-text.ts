// Text of what an entry has changed.
import { formatBytes, formatCount, formatUtcMinute } from '../format.ts'
import type { Entry } from './actions.ts'

type Value = Entry['changes'][string][0]

/** Actions whose text contains the change. */
const CHANGE_IN_TEXT = /^user\.(made-|invited)|^workspace\.renamed$/

/** Empty if there is nothing to add to the text of the entry. */
export function describeChanges({ action, target, changes }: Entry): string {
  if (CHANGE_IN_TEXT.test(action)) return ''
  return Object.entries(changes)
    .filter(([, [, after]]) => after === null || after !== target.name)
    .map(([field, [before = null, after = null]]) => describeField(field, before, after))
    .join(' · ')
}

interface Field {
  label: string
  /** The text for no value. A field that has it always shows the value before the change. */
  none?: string
  format?: (value: NonNullable<Value>) => string
}

const days = (value: NonNullable<Value>) => `${value} ${value === 1 ? 'day' : 'days'}`
const creators: Record<string, string> = {
  member: 'everyone',
  admin: 'admins and owners',
  owner: 'owners only',
}
const quota = (label: string, format = formatCount): Field => ({
  label,
  format: (value) => (typeof value === 'number' ? format(value) : String(value)),
})

/** Fields whose names need a label, or whose values need a format. */
const fields: Record<string, Field> = {
  expiresAt: { label: 'expires' },
  keyExpiresAt: { label: 'key expires' },
  deviceAddress: { label: 'IP address of the device' },
  keyDaysMax: { label: 'maximum key lifetime', none: 'no limit', format: days },
  keysManageKeys: { label: 'API keys can manage API keys' },
  keyCreators: { label: 'who can create API keys', format: (role) => creators[String(role)] ?? String(role) },
  twoFactorRequired: { label: 'two-factor authentication required' },
  user: { label: 'user name' },
  events: { label: 'events', format: (types) => String(types).replaceAll(',', ', ') || 'all' },
  allowIp: { label: 'allowed IP addresses' },
  hostHeader: { label: 'Host header' },
  bytes: quota('traffic', formatBytes),
  requests: quota('requests'),
  tunnels: quota('open tunnels'),
  keys: quota('API keys'),
}

function describeField(name: string, before: Value, after: Value): string {
  const field = fields[name] ?? { label: toWords(name) }
  const text = (value: Value) => valueText(value, field)
  const isNew = before === null && field.none === undefined
  return `${field.label}: ${isNew ? text(after) : `${text(before)} → ${text(after)}`}`
}

/** Labels a field of a newer version: `someField` becomes `some field`. */
const toWords = (field: string) => field.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

const TIMESTAMP = /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/

function valueText(value: Value, { none = 'none', format }: Field): string {
  if (value === null) return none
  if (format) return format(value)
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'object') return value.length === 0 ? 'none' : value.join(', ')
  if (typeof value === 'string' && TIMESTAMP.test(value)) return formatUtcMinute(value)
  return value === '' ? '(empty)' : String(value)
}
