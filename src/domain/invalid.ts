// Checks a value against a schema of the contract and says in plain words what is wrong with it.
import type { Static, TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { type Detail, Fault } from './fault.ts'

const DETAILS_MAX = 20

export type Checker<T> = (value: unknown) => asserts value is T

/** Compiles once, when it is first needed, and checks many times. `place` is where the value stands, e.g. `/body` of a request. */
export function checker<S extends TSchema>(schema: S, place: string): Checker<Static<S>> {
  let compiled: ReturnType<typeof Compile<S>> | undefined
  return (value) => {
    compiled ??= Compile(schema)
    if (compiled.Check(value)) return
    const details: Detail[] = compiled
      .Errors(value)
      .slice(0, DETAILS_MAX)
      .map(({ instancePath, keyword, message }) => {
        const found = schemaAt(schema, instancePath)
        return { path: place + instancePath, message: explain(found, keyword, message) }
      })
    const message = details.map((detail) => `${detail.path} ${detail.message}`).join('; ')
    throw new Fault('invalid_request', { message, details })
  }
}

interface Limits {
  type?: string
  minimum?: number
  maximum?: number
  maxLength?: number
  'x-rule'?: string
}

function explain(schema: Limits, keyword: string, fallback: string): string {
  if (keyword === 'pattern' && schema['x-rule']) return schema['x-rule']
  if (keyword === 'minLength') return 'must not be empty'
  if (keyword === 'maxLength') return `must not be longer than ${schema.maxLength} characters`
  if (schema.type === 'integer' && schema.minimum !== undefined && schema.maximum !== undefined)
    return `must be a whole number from ${schema.minimum} to ${schema.maximum}`
  if (keyword === 'type') return `must be ${schema.type === 'object' ? 'an object' : `a ${schema.type}`}`
  return fallback
}

function schemaAt(schema: TSchema, instancePath: string): Limits {
  let at = schema as { properties?: Record<string, TSchema>; items?: TSchema }
  for (const step of instancePath.split('/').slice(1)) at = at.properties?.[step] ?? at.items ?? {}
  return at as Limits
}
