// Validates values against schemas of the contract, with plain error messages.
import type { Static, TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { Errors } from 'typebox/value'
import { forbiddenCharacter } from '../../contract/text.ts'
import { Fault, type FaultDetail } from './fault.ts'

const DETAILS_MAX = 20
/** Maximum length of an unknown member's name in a message. */
const NAME_CHARS_MAX = 50

export type Checker<T> = (value: unknown) => asserts value is T

/** `path` is the location of the value, e.g. `/body` of a request. */
export function checker<S extends TSchema>(schema: S, path: string): Checker<Static<S>> {
  const check = lazyCheck(schema)
  return (value) => {
    if (check(value)) return
    const details: FaultDetail[] = []
    for (const detail of listErrors(schema, value, path)) if (details.push(detail) === DETAILS_MAX) break
    const message = details.map((detail) => `${detail.path} ${detail.message}`).join('; ')
    throw new Fault('invalid_request', { message, details })
  }
}

/** Compiles on first use, for a faster start. */
function lazyCheck(schema: TSchema): (value: unknown) => boolean {
  let compiled: { Check(value: unknown): boolean } | undefined
  return (value) => {
    compiled ??= Compile(schema)
    return compiled.Check(value)
  }
}

/** The keywords that the contract uses for input. */
interface Schema {
  type?: string | string[]
  properties?: Record<string, TSchema>
  patternProperties?: Record<string, TSchema>
  required?: string[]
  additionalProperties?: unknown
  items?: TSchema
  enum?: readonly string[]
  minLength?: number
  maxItems?: number
  minimum?: number
  maximum?: number
  maxLength?: number
  'x-rule'?: string
}

const itemChecks = new WeakMap<TSchema, (value: unknown) => boolean>()

/**
 * Computes only the errors that are reported: the library's own list is eager, and would take seconds for
 * millions of items. The items of a list that is too long are not checked.
 */
function* listErrors(schema: TSchema, value: unknown, path: string): Generator<FaultDetail, undefined> {
  const { type, items, maxItems = Number.POSITIVE_INFINITY, properties, required = [] } = schema as Schema
  const { patternProperties = {}, additionalProperties } = schema as Schema
  if (type === 'array' && items && Array.isArray(value)) {
    if (value.length > maxItems) yield { path, message: `must not have more than ${maxItems} items` }
    else yield* listItemErrors(items, value, path)
  } else if (type === 'object' && properties && isObject(value)) {
    const missing = required.filter((name) => value[name] === undefined)
    if (missing.length > 0) yield { path, message: `must have required properties ${missing.join(', ')}` }
    if (additionalProperties === false) yield* unknownMembers(properties, value, path)
    for (const [name, property] of Object.entries(properties))
      if (value[name] !== undefined) yield* listErrors(property, value[name], `${path}/${name}`)
    for (const [pattern, property] of Object.entries(patternProperties))
      for (const name of Object.keys(value).filter((each) => new RegExp(pattern, 'u').test(each)))
        yield* listErrors(property, value[name], `${path}/${name}`)
  } else
    for (const { instancePath, keyword, message } of Errors(schema, value))
      yield { path: path + instancePath, message: explain(schema as Schema, keyword, message, value) }
}

function* unknownMembers(
  properties: Record<string, TSchema>,
  value: Record<string, unknown>,
  path: string,
): Generator<FaultDetail, undefined> {
  const expected = Object.keys(properties).join(', ')
  for (const name of Object.keys(value))
    if (!Object.hasOwn(properties, name))
      yield { path: `${path}/${name.slice(0, NAME_CHARS_MAX)}`, message: `is unknown; expected ${expected}` }
}

function* listItemErrors(items: TSchema, list: unknown[], path: string): Generator<FaultDetail, undefined> {
  const check = itemChecks.get(items) ?? lazyCheck(items)
  itemChecks.set(items, check)
  for (const [index, item] of list.entries())
    if (!check(item)) yield* listErrors(items, item, `${path}/${index}`)
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function explain(schema: Schema, keyword: string, fallback: string, value: unknown): string {
  const { type, enum: values, minimum, maximum, minLength, maxLength } = schema
  if (keyword === 'not' && schema['x-rule']) return schema['x-rule']
  if (keyword === 'pattern' && schema['x-rule'])
    return (typeof value === 'string' && forbiddenCharacter(value)) || schema['x-rule']
  if (keyword === 'minLength' && minLength === 1) return 'must not be empty'
  if (minLength !== undefined && minLength > 1 && (keyword === 'minLength' || keyword === 'maxLength'))
    return `must be ${minLength} to ${maxLength} characters long`
  if (keyword === 'maxLength') return `must not be longer than ${maxLength} characters`
  if (keyword === 'enum' && values) return `must be one of ${values.join(', ')}`
  if (type === 'integer' && minimum !== undefined && maximum !== undefined)
    return `must be a whole number from ${minimum} to ${maximum}`
  if (Array.isArray(type)) return schema['x-rule'] ?? fallback
  if (keyword === 'type') return `must be ${/^[aeiou]/.test(type ?? '') ? 'an' : 'a'} ${type}`
  return fallback
}
