// Validation messages name the limit of a text or list that was exceeded.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TSchema } from 'typebox'
import { type Api, apis } from '../../src/contract/apis.ts'
import type { Fault } from '../../src/server/domain/fault.ts'
import { type Checker, checker } from '../../src/server/domain/validation.ts'

interface Bounds {
  type?: string
  enum?: string[]
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  maxItems?: number
  items?: TSchema
  properties?: Record<string, TSchema>
}

/** All schemas of an input with their names, including fields of list items. */
function* inputs(name: string, schema: TSchema): Generator<[string, TSchema]> {
  yield [name, schema]
  const { properties = {}, items } = schema as Bounds
  for (const [member, part] of Object.entries(properties)) yield* inputs(`${name}.${member}`, part)
  if (items) yield* inputs(`${name}[]`, items)
}

function validationMessage(schema: TSchema, value: unknown): string | undefined {
  const check: Checker<unknown> = checker(schema, '/value')
  try {
    check(value)
    return undefined
  } catch (error) {
    return (error as Fault).details.map(({ message }) => message).join('; ')
  }
}

const operations = Object.values<Api>(apis).flatMap((api) => api.operations)
const fields = operations.flatMap((operation) =>
  (['params', 'query', 'headers', 'body'] as const).flatMap((part) => {
    const schema = operation[part]
    return schema ? [...inputs(`${operation.id} ${part}`, schema)] : []
  }),
)

test('the message for a text of the wrong length names the allowed length', () => {
  for (const [name, schema] of fields) {
    const { type, minLength, maxLength, enum: values } = schema as Bounds
    if (type !== 'string' || values) continue
    const range = `must be ${minLength} to ${maxLength} characters long`
    if (minLength !== undefined && minLength > 1)
      for (const length of [0, minLength - 1])
        assert.equal(validationMessage(schema, 'x'.repeat(length)), range, name)
    if (minLength === 1) assert.match(validationMessage(schema, '') ?? '', /^must not be empty/, name)
    if (maxLength !== undefined) {
      const bound = minLength !== undefined && minLength > 1 ? range : `longer than ${maxLength} characters`
      assert.ok(validationMessage(schema, 'x'.repeat(maxLength + 1))?.includes(bound), name)
    }
  }
})

test('no message shows a pattern, and that of an enum lists its values', () => {
  for (const [name, schema] of fields) {
    const { enum: values, maxItems } = schema as Bounds
    for (const value of ['', '\u0000', '!'.repeat(5_000), 7, null, [], {}]) {
      const message = validationMessage(schema, value) ?? ''
      assert.doesNotMatch(message, /pattern|\^|allowed values|a (array|integer|object)/, name)
      if (values && typeof value === 'string') assert.equal(message, `must be one of ${values.join(', ')}`)
    }
    if (maxItems !== undefined)
      assert.equal(
        validationMessage({ ...schema, items: {} }, Array(maxItems + 1).fill(0)),
        `must not have more than ${maxItems} items`,
        name,
      )
  }
})
