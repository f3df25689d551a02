// What a caller reads when a value is refused: each message names the bound that was missed.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TSchema } from 'typebox'
import { dashboardOperations } from '../../src/contract/dashboard/index.ts'
import { edgeOperations } from '../../src/contract/edge.ts'
import type { Operation } from '../../src/contract/operation.ts'
import { variants } from '../../src/contract/variants.ts'
import type { Fault } from '../../src/domain/fault.ts'
import { type Checker, checker } from '../../src/domain/validation.ts'

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

/** Every schema of an input, with its name: fields, and the fields of items in lists. */
function* inputs(name: string, schema: TSchema): Generator<[string, TSchema]> {
  yield [name, schema]
  const { properties = {}, items } = schema as Bounds
  for (const [member, part] of Object.entries(properties)) yield* inputs(`${name}.${member}`, part)
  if (items) yield* inputs(`${name}[]`, items)
}

function refusal(schema: TSchema, value: unknown): string | undefined {
  const check: Checker<unknown> = checker(schema, '/value')
  try {
    check(value)
    return undefined
  } catch (error) {
    return (error as Fault).details.map(({ message }) => message).join('; ')
  }
}

const operations: readonly Operation[] = [
  ...variants.A,
  ...variants.B,
  ...edgeOperations,
  ...dashboardOperations,
]
const fields = operations.flatMap((operation) =>
  (['params', 'query', 'headers', 'body'] as const).flatMap((part) => {
    const schema = operation[part]
    return schema ? [...inputs(`${operation.id} ${part}`, schema)] : []
  }),
)

test('a text of the wrong length is told the length that is asked for', () => {
  for (const [name, schema] of fields) {
    const { type, minLength, maxLength, enum: values } = schema as Bounds
    if (type !== 'string' || values) continue
    const range = `must be ${minLength} to ${maxLength} characters long`
    if (minLength !== undefined && minLength > 1)
      for (const length of [0, minLength - 1]) assert.equal(refusal(schema, 'x'.repeat(length)), range, name)
    if (minLength === 1) assert.match(refusal(schema, '') ?? '', /^must not be empty/, name)
    if (maxLength !== undefined) {
      const bound = minLength !== undefined && minLength > 1 ? range : `longer than ${maxLength} characters`
      assert.ok(refusal(schema, 'x'.repeat(maxLength + 1))?.includes(bound), name)
    }
  }
})

test('no message shows a pattern, and a choice lists what can be chosen', () => {
  for (const [name, schema] of fields) {
    const { enum: values, maxItems } = schema as Bounds
    for (const value of ['', '\u0000', '!'.repeat(5_000), 7, null, [], {}]) {
      const message = refusal(schema, value) ?? ''
      assert.doesNotMatch(message, /pattern|\^|allowed values|a (array|integer|object)/, name)
      if (values && typeof value === 'string') assert.equal(message, `must be one of ${values.join(', ')}`)
    }
    if (maxItems !== undefined)
      assert.equal(
        refusal({ ...schema, items: {} }, Array(maxItems + 1).fill(0)),
        `must not have more than ${maxItems} items`,
        name,
      )
  }
})
