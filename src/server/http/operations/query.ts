// Query strings → values of the contract's types. Only decimal digits become an integer: other text that
// JavaScript would convert to a number (`1e2`, ` 7`, `0x7`, the empty string) stays text and fails
// validation.
import type { TObject } from 'typebox'

const DIGITS = /^[0-9]{1,15}$/

export function readQuery(schema: TObject, query: Record<string, unknown>): Record<string, unknown> {
  const read: Record<string, unknown> = {}
  for (const [name, property] of Object.entries(schema.properties)) {
    if (!Object.hasOwn(query, name)) continue
    const value = query[name]
    const isInteger = (property as { type?: string }).type === 'integer'
    read[name] = isInteger && typeof value === 'string' && DIGITS.test(value) ? Number(value) : value
  }
  return read
}
