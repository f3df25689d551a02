// Text of what an entry has changed.
import type { Entry } from './entry-text.ts'

type Value = Entry['changes'][string][0]

/** The text of these entries has the change already. */
const toldByText = /^person\.(made-|invited)|^workspace\.renamed$/

/** Empty if there is nothing to add to the text of the entry. */
export function describeChanges({ action, target, changes }: Entry): string {
  if (toldByText.test(action)) return ''
  return Object.entries(changes)
    .filter(([, [, after]]) => after === null || after !== target.name)
    .map(([field, [before = null, after = null]]) => `${fieldName(field)}: ${valuesText(before, after)}`)
    .join(' · ')
}

const valuesText = (before: Value, after: Value) =>
  before === null ? valueText(after) : `${valueText(before)} → ${valueText(after)}`

/** `expiresAt` becomes `expires at`. */
const fieldName = (field: string) => field.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

function valueText(value: Value): string {
  if (value === null) return 'none'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'object') return value.length === 0 ? 'none' : value.join(', ')
  return value === '' ? '(empty)' : String(value)
}
