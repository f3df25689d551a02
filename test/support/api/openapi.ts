// Validates responses against the OpenAPI document that the server serves, with an independent validator.
import assert from 'node:assert/strict'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { TestResponse } from './server.ts'

interface Described {
  $ref?: string
  headers?: Record<string, unknown>
  content?: Record<string, { schema: object }>
}

export interface Document {
  paths: Record<string, Record<string, { operationId: string; responses: Record<string, Described> }>>
  components: { responses: Record<string, Described> }
}

/** Headers that must be present if the document describes them. */
const ALWAYS = ['X-Request-Id', 'Access-Control-Allow-Origin', 'X-Adit-Workspace', 'X-Adit-Key-Id']

/** Closes every object schema, so that undocumented fields fail as well. */
function close(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(close)
  if (typeof schema !== 'object' || schema === null) return schema
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, close(value)]))
  return 'properties' in copy && !('additionalProperties' in copy)
    ? { ...copy, additionalProperties: false }
    : copy
}

export function createResponseValidator(document: Document) {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: true })
  addFormats.default(ajv)
  ajv.addSchema({ $id: 'doc', ...(close(document) as object) })
  const compiled = new Map<string, ValidateFunction>()

  /** Fails unless the document describes this response of the operation. */
  return function validateResponse(path: string, method: string, response: TestResponse): void {
    const what = `${method} ${path} → ${response.status} ${response.text.slice(0, 200)}`
    const responses = document.paths[path]?.[method.toLowerCase()]?.responses
    assert.ok(responses, `not described: ${method} ${path}`)
    const named = responses[response.status]
    assert.ok(named, `status not described: ${what}`)
    const described = named.$ref
      ? (document.components.responses[named.$ref.split('/').at(-1) as string] as Described)
      : named
    const pointer = named.$ref
      ? named.$ref
      : `#/paths/${path.replaceAll('/', '~1')}/${method.toLowerCase()}/responses/${response.status}`
    for (const header of Object.keys(described.headers ?? {}).filter((name) => ALWAYS.includes(name)))
      assert.ok(response.headers.has(header), `${header} missing: ${what}`)
    assert.ok(described.headers?.['X-Request-Id'], what)
    if (!described.content) {
      assert.equal(response.text, '', what)
      return
    }
    const key = `doc${encodeURI(`${pointer}/content/application~1json/schema`)}`
    const validate = compiled.get(key) ?? ajv.compile({ $ref: key })
    compiled.set(key, validate)
    assert.ok(validate(response.json), `${what}: ${ajv.errorsText(validate.errors)}`)
  }
}
