// Validates names and types of tool arguments, which the API cannot see: paths and queries carry only text,
// and unknown body members are ignored. The API validates everything else.
import { AditError } from '../client/index.ts'
import type { AgentTool } from './tools.ts'

/** The same as in the API. */
const DETAILS_MAX = 20

const types: Record<string, { name: string; matches: (value: unknown) => boolean }> = {
  string: { name: 'a string', matches: (value) => typeof value === 'string' },
  integer: { name: 'a whole number', matches: Number.isInteger },
  boolean: { name: 'true or false', matches: (value) => typeof value === 'boolean' },
  array: {
    name: 'a list of strings',
    matches: (value) => Array.isArray(value) && value.every((item) => typeof item === 'string'),
  },
}

export function validateArguments(
  { definition }: Pick<AgentTool, 'definition'>,
  args: Record<string, unknown>,
): void {
  const { properties = {}, required = [] } = definition.inputSchema
  const details: { path: string; message: string }[] = []
  for (const name of new Set([...required, ...Object.keys(args)])) {
    const property = Object.hasOwn(properties, name) ? (properties[name] as { type?: string }) : undefined
    const message = Object.hasOwn(args, name) ? validateArgument(property, args[name]) : 'is missing'
    if (message) details.push({ path: `/${name}`, message })
    if (details.length === DETAILS_MAX) break
  }
  if (details.length > 0) throw new AditError({ error: 'invalid_request', details })
}

function validateArgument(property: { type?: string } | undefined, value: unknown): string | undefined {
  if (!property) return 'is not an argument of this tool'
  const type = types[property.type ?? '']
  return type && !type.matches(value) ? `must be ${type.name}` : undefined
}
