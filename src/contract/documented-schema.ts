// Schemas for documents and tools of other languages: without our own keywords and anything that only
// JavaScript understands. The server validates against the original.
import { DISPLAY_NAME, DISPLAY_TEXT } from './text.ts'

type Json = { [member: string]: unknown }

const INT32_MAX = 2 ** 31 - 1

// `\p{…}` does not compile in Python, lookbehind not in Go; two hexadecimal digits do everywhere.
const CONTROLS = '\\x00-\\x1f\\x7f-\\x9f'
const displayPatterns: unknown[] = [DISPLAY_TEXT, DISPLAY_NAME]

/** Accepts all that the pattern does, and compiles in Python, Java, Go (RE2) and JavaScript without flags. */
const portablePattern = (pattern: string): string =>
  displayPatterns.includes(pattern) ? `^[^${CONTROLS}]*$` : pattern.replaceAll('\\p{Cc}\\p{Cs}', CONTROLS)

/**
 * Converts one schema, but not the schemas nested in it. `patternProperties` is omitted, because the
 * description names the fields that it rejects.
 */
export function documentedSchema({ 'x-rule': _rule, patternProperties: _names, ...schema }: Json): Json {
  const { pattern, maximum } = schema
  const isInteger = [schema.type].flat().includes('integer')
  // Generators of Java and C# take an integer without a format for one of 32 bits.
  const isLong = isInteger && !(typeof maximum === 'number' && maximum <= INT32_MAX)
  return {
    ...schema,
    ...(typeof pattern === 'string' && { pattern: portablePattern(pattern) }),
    ...(isLong && { format: 'int64' }),
  }
}
