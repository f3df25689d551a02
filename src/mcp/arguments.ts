// What an agent gave a tool, as far as the API cannot judge it. A path and a query carry only text, and a body's unknown
// members are ignored: names and types are checked before they are lost there. All else is the API's to refuse.
import { AditError } from '../client/index.ts'
import type { AgentTool } from './tools.ts'

/** As many as the API itself reports. */
const DETAILS_MAX = 20

const kinds: Record<string, { words: string; holds: (value: unknown) => boolean }> = {
  string: { words: 'a string', holds: (value) => typeof value === 'string' },
  integer: { words: 'a whole number', holds: Number.isInteger },
}

export function requireShape({ listed }: AgentTool, given: Record<string, unknown>): void {
  const { properties = {}, required = [] } = listed.inputSchema
  const names = new Set([...required, ...Object.keys(given)])
  const details = names
    .values()
    .flatMap((name) => {
      const property = Object.hasOwn(properties, name) ? (properties[name] as { type?: string }) : undefined
      const message = Object.hasOwn(given, name) ? mistakeIn(property, given[name]) : 'is missing'
      return message ? [{ path: `/${name}`, message }] : []
    })
    .take(DETAILS_MAX)
    .toArray()
  if (details.length > 0) throw new AditError({ error: 'invalid_request', details })
}

function mistakeIn(property: { type?: string } | undefined, value: unknown): string | undefined {
  if (!property) return 'is no argument of this tool'
  const kind = kinds[property.type ?? '']
  return kind && !kind.holds(value) ? `must be ${kind.words}` : undefined
}
