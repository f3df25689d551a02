// The served OpenAPI documents.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { serve } from '../support/api/server.ts'

const variants = ['A', 'B'] as const

interface Described {
  summary: string
  description: string
  responses: Record<string, { $ref?: string; content?: Record<string, object> }>
  requestBody?: { content: Record<string, object> }
}

for (const variant of variants) {
  test(`variant ${variant}: the served document passes an independent linter`, async (t) => {
    for (const env of [{}, { ADIT_BASE_URL: 'https://adit.internal' }]) {
      const server = await serve(t, { engine: 'sqlite', env: { ADIT_API_VARIANT: variant, ...env } })
      const { text } = await server.call('GET', '/openapi.json', { key: null })
      const config = await createConfig({ extends: ['recommended-strict'] })
      const problems = await lintFromString({ source: text, absoluteRef: 'openapi.json', config })
      assert.deepEqual(
        problems.map(
          ({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer ?? ''}`,
        ),
        [],
      )
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

test('the edge and device API documents pass the same linter, and are separate from the public one', async (t) => {
  const { url, call } = await serve(t, { engine: 'sqlite' })
  const config = await createConfig({ extends: ['recommended-strict'] })
  const paths: Record<string, string[]> = {
    '/edge/v1': [
      '/keys/verify',
      '/authorize',
      '/key-changes',
      '/tunnels/claim',
      '/tunnels/sync',
      '/usage',
      '/hosts/find',
      '/openapi.json',
    ],
    '/device': ['/authorize', '/token', '/openapi.json'],
  }
  for (const [prefix, expected] of Object.entries(paths)) {
    const response = await fetch(`${url}${prefix}/openapi.json`)
    assert.equal(response.headers.get('access-control-allow-origin'), null)
    const source = await response.text()
    const problems = await lintFromString({ source, absoluteRef: 'openapi.json', config })
    assert.deepEqual(
      problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer ?? ''}`),
      [],
    )
    assert.deepEqual(Object.keys(JSON.parse(source).paths), expected)
  }
  assert.ok(!(await call('GET', '/openapi.json')).text.includes('/keys/verify'))
})
