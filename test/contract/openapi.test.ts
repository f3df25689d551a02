// The served OpenAPI documents.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { type Api, apis } from '../../src/contract/apis.ts'
import { describe } from '../../src/contract/openapi.ts'
import { serve } from '../support/api/server.ts'

const variants = ['A', 'B'] as const

interface Described {
  summary: string
  description: string
  responses: Record<string, { $ref?: string; content?: Record<string, object> }>
  requestBody?: { content: Record<string, object> }
}

/** An operation that redirects has no 2XX response. */
async function lint(source: string, redirects = false): Promise<string[]> {
  const rules = redirects ? { 'operation-2xx-response': 'off' as const } : {}
  const config = await createConfig({ extends: ['recommended-strict'], rules })
  const problems = await lintFromString({ source, absoluteRef: 'openapi.json', config })
  return problems.map(
    ({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer ?? ''}`,
  )
}

for (const variant of variants) {
  test(`variant ${variant}: the served document passes an independent linter`, async (t) => {
    for (const env of [{}, { ADIT_BASE_URL: 'https://adit.internal' }]) {
      const server = await serve(t, { engine: 'sqlite', env: { ADIT_API_VARIANT: variant, ...env } })
      const { text } = await server.call('GET', '/openapi.json', { key: null })
      assert.deepEqual(await lint(text), [])
    }
  })

  test(`variant ${variant}: the document describes exactly the running variant`, async (t) => {
    const { call } = await serve(t, { engine: 'sqlite', env: { ADIT_API_VARIANT: variant } })
    const { json: document, headers } = await call('GET', '/openapi.json', { key: null })
    assert.match(document.openapi, /^3\.1\./)
    assert.equal(headers.get('content-type'), 'application/json; charset=utf-8')
    const operations = Object.entries(document.paths as Record<string, object>).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path}`),
    )
    const shared = ['get /openapi.json', 'get /tokens', 'get /usage', 'get /workspace']
    assert.deepEqual(operations.sort(), [
      ...(variant === 'A' ? ['delete /tokens/{id}'] : []),
      ...shared,
      ...(variant === 'A' ? ['post /tokens'] : []),
    ])
    const fields = Object.keys(document.components.schemas.Workspace.properties)
    assert.deepEqual(fields, ['slug', 'name', 'provisioned', variant === 'A' ? 'tunnelBase' : 'exampleUrl'])
    const days = document.paths['/usage'].get.parameters[0].schema
    assert.deepEqual([days.minimum, days.maximum, days.default], [1, 365, 30])
  })

  test(`variant ${variant}: every operation has a summary, a description and examples`, async (t) => {
    const { call } = await serve(t, { engine: 'sqlite', env: { ADIT_API_VARIANT: variant } })
    const { json: document } = await call('GET', '/openapi.json', { key: null })
    for (const [path, methods] of Object.entries(document.paths))
      for (const [method, operation] of Object.entries(methods as Record<string, Described>)) {
        const what = `${method} ${path}`
        assert.ok(operation.summary.length > 5, what)
        assert.ok(operation.description.length > 20, what)
        const contents = Object.values(operation.responses).map(({ $ref, content }) =>
          $ref ? document.components.responses[$ref.split('/').at(-1) as string].content : content,
        )
        for (const content of [...contents, operation.requestBody?.content])
          for (const body of Object.values((content ?? {}) as Record<string, object>))
            assert.ok('example' in body, what)
        assert.ok(contents.filter(Boolean).length >= 3, what)
      }
    for (const response of Object.values(
      document.components.responses as Record<string, { description: string }>,
    ))
      assert.ok(response.description.length > 10)
  })
}

for (const [name, { prefix, operations, document }] of Object.entries<Api>(apis))
  if (document && !document.crossOrigin)
    test(`${name}: the document passes the same linter, and has the operations of this API only`, async (t) => {
      const { url } = await serve(t, { engine: 'sqlite' })
      const response = await fetch(`${url}${prefix}/openapi.json`)
      assert.equal(response.headers.get('access-control-allow-origin'), null)
      const source = await response.text()
      const redirects = operations.some(({ response }) => response.status === 302)
      assert.deepEqual(await lint(source, redirects), [])
      assert.deepEqual(Object.keys(JSON.parse(source).paths), [
        ...new Set(operations.map(({ path }) => path)),
      ])
    })

/** Every object in a document, with its path. */
function* objectsIn(value: unknown, path = ''): Generator<[string, Record<string, unknown>]> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield [path, value as Record<string, unknown>]
  for (const [member, part] of Object.entries(value)) yield* objectsIn(part, `${path}/${member}`)
}

test('integers above 2^31 have a format, lists say of what, and responses do not limit texts', () => {
  const long: string[] = []
  for (const api of Object.values<Api>(apis)) {
    if (!api.document) continue
    for (const [path, schema] of objectsIn(describe({ ...api, document: api.document }, ''))) {
      const types = [schema.type].flat()
      if (types.includes('array')) assert.ok(schema.items, path)
      if (!types.includes('integer')) continue
      const isLong = !(Number(schema.maximum) < 2 ** 31)
      assert.equal(schema.format, isLong ? 'int64' : undefined, path)
      if (isLong) long.push(path)
    }
    const { paths } = describe({ ...api, document: api.document }, '') as { paths: object }
    for (const [path, schema] of objectsIn(paths))
      if (path.includes('/responses/') && !path.includes('/headers/'))
        assert.ok(!('maxLength' in schema), path)
  }
  assert.ok(long.some((path) => path.endsWith('/Usage/properties/totalBytes')))
})
