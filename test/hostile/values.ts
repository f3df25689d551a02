// Random values, valid and invalid for a schema.
import type { Random } from '../support/random.ts'

interface Schema {
  type?: string | string[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  examples?: unknown[]
  minimum?: number
  maximum?: number
}

const TEXTS = [
  '',
  ' ',
  '0',
  '-1',
  '1e309',
  'null',
  'acme',
  'tok_01k9x2m4q7r8s9t0v1w2x3y4z5',
  '2026-11-15',
  '2026-02-30T24:00:00Z',
  "' or 1=1 --",
  '../../../etc/passwd',
  '%00%0d%0a',
  '\u0000',
  '\ud800',
  '\u202e\u2066',
  '\r\nSet-Cookie: a=b',
  '__proto__',
  'constructor',
  '😀'.repeat(81),
  'x'.repeat(5_000),
  'a@example.com',
  'http://127.0.0.1/',
]

export const text = (random: Random): string =>
  random.chance(0.7)
    ? random.pick(TEXTS)
    : Array.from({ length: random.whole(1, 60) }, () => String.fromCharCode(random.whole(0, 0x3000))).join('')

const NUMBERS = [0, -0, -1, 1, 2 ** 31, 2 ** 53, -(2 ** 53), 1.5, 1e308, 365, 5_000]

/** Any JSON value, nested up to `depth`. */
export function json(random: Random, depth = 3): unknown {
  switch (random.whole(0, depth > 0 ? 7 : 4)) {
    case 0:
      return null
    case 1:
      return random.chance(0.5)
    case 2:
      return random.pick(NUMBERS)
    case 3:
      return text(random)
    case 4:
      return Array.from({ length: random.whole(0, 6) }, () => json(random, depth - 1))
    default:
      return Object.fromEntries(
        Array.from({ length: random.whole(0, 5) }, () => [text(random), json(random, depth - 1)]),
      )
  }
}

/** Mostly valid for the schema; one value in ten is not. */
export function sample(given: unknown, random: Random): unknown {
  const schema = given as Schema
  if (random.chance(0.1)) return json(random)
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return random.pick(schema.enum)
  if (schema.anyOf) return sample(random.pick(schema.anyOf), random)
  if (schema.properties) return sampleObject(schema, random)
  if (schema.examples?.length && random.chance(0.6)) return random.pick(schema.examples)
  const type = Array.isArray(schema.type) ? random.pick(schema.type) : schema.type
  if (type === 'array')
    return Array.from({ length: random.whole(0, 8) }, () => sample(schema.items ?? {}, random))
  if (type === 'integer' || type === 'number')
    return random.whole(schema.minimum ?? 0, Math.min(schema.maximum ?? 1_000, 1_000_000))
  return type === 'boolean' ? random.chance(0.5) : text(random)
}

function sampleObject({ properties = {}, required = [] }: Schema, random: Random): unknown {
  const members = Object.entries(properties).filter(([name]) => required.includes(name) || random.chance(0.7))
  const object = Object.fromEntries(members.map(([name, schema]) => [name, sample(schema, random)]))
  return random.chance(0.1) ? { ...object, [text(random)]: json(random) } : object
}
