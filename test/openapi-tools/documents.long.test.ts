// Tools of others read the documents of a running server. They are installed outside of the repository, by
// the lock file in this folder.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { type Api, apis } from '../../src/contract/apis.ts'
import { documentedPatterns, LABELS } from '../support/api/patterns.ts'
import { addEdge, serve, type TestServer } from '../support/api/server.ts'
import { counter } from '../support/api/usage.ts'
import { npmCi } from '../support/processes/npm.ts'
import { root } from '../support/processes/process.ts'

const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'adit-openapi-tools-'))
const requireTool = createRequire(join(folder, 'package.json'))

after(() => rmSync(folder, { recursive: true }))
before(() => {
  for (const file of ['package.json', 'package-lock.json'])
    cpSync(join(import.meta.dirname, file), join(folder, file))
  npmCi(folder)
})

const readDocument = async (server: TestServer, prefix: string) =>
  (await fetch(`${server.url}${prefix}/openapi.json`)).text()

test('every document passes the rules of Spectral', async (t) => {
  const { Spectral } = requireTool('@stoplight/spectral-core')
  const { oas } = requireTool('@stoplight/spectral-rulesets')
  const spectral = new Spectral()
  spectral.setRuleset({ extends: [oas] })
  const lint = async (document: string) =>
    ((await spectral.run(document)) as { code: string; path: string[] }[]).map(
      ({ code, path }) => `${code} ${path.join('/')}`,
    )
  for (const variant of ['A', 'B'] as const) {
    const server = await serve(t, { engine: 'sqlite', env: { ADIT_API_VARIANT: variant } })
    for (const { prefix, document } of Object.values<Api>(apis))
      if (document) assert.deepEqual(await lint(await readDocument(server, prefix)), [], prefix)
  }
  assert.ok((await lint('{"openapi":"3.1.1","info":{"title":"x","version":"1"}}')).length > 0)
})

test('every pattern of a document compiles in RE2, as in Go, and accepts its examples', () => {
  const { RE2JS } = requireTool('re2js')
  for (const [pattern, texts] of documentedPatterns()) {
    const compiled = RE2JS.compile(pattern)
    for (const text of texts) assert.ok(compiled.matcher(text).find(), `${pattern} ${text}`)
  }
  assert.throws(() => RE2JS.compile('(?<=a)b'))
})

/** Responses of a server with labels in many scripts, and counts above 2^32. */
async function readResponses(server: TestServer, variant: 'A' | 'B') {
  const responses: Record<string, unknown> = { usageBefore: (await server.call('GET', '/usage')).json }
  const edge = await addEdge(server)
  const day = new Date().toISOString().slice(0, 10)
  const counts = { requests: 7, bytesIn: 5_000_000_000, bytesOut: 1, events: 3, lastSeen: `${day}T00:00:00Z` }
  const { json: receipt } = await edge.report({ epoch: 'e-1', counters: [counter({ day, ...counts })] })
  assert.equal(receipt.accepted, 1)
  if (variant === 'A') {
    for (const label of LABELS) responses.created = (await server.post('/tokens', { label })).json
    const { id } = responses.created as { id: string }
    responses.revoked = (await server.call('DELETE', `/tokens/${id}`)).json
  }
  for (const name of ['workspace', 'tokens', 'usage'])
    responses[name] = (await server.call('GET', `/${name}`)).json
  return responses
}

const schemas: Record<string, string> = {
  workspace: 'workspaceReadResponse',
  tokens: 'tokensListResponse',
  usage: 'usageReadResponse',
  usageBefore: 'usageReadResponse',
  revoked: 'tokensRevokeResponse',
}

/** The types of the responses in what openapi-typescript generates. */
const types: Record<string, string> = {
  workspace: "paths['/workspace']['get']['responses'][200]",
  tokens: "paths['/tokens']['get']['responses'][200]",
  usage: "paths['/usage']['get']['responses'][200]",
  usageBefore: "paths['/usage']['get']['responses'][200]",
  created: "paths['/tokens']['post']['responses'][201]",
  revoked: "paths['/tokens/{id}']['delete']['responses'][200]",
}

for (const variant of ['A', 'B'] as const)
  test(`variant ${variant}: generated zod schemas accept responses, and generated types compile`, async (t) => {
    const server = await serve(t, { engine: 'sqlite', env: { ADIT_API_VARIANT: variant } })
    const file = join(folder, `${variant}.json`)
    writeFileSync(file, await readDocument(server, '/api/v1'))
    const responses = await readResponses(server, variant)

    const orval = ['node_modules/orval/dist/bin/orval.js', '--input', file, '--client', 'zod']
    await run(process.execPath, [...orval, '--output', `zod-${variant}.ts`], { cwd: folder })
    const generated = await import(pathToFileURL(join(folder, `zod-${variant}.ts`)).href)
    for (const [name, response] of Object.entries(responses))
      if (schemas[name]) {
        const { error } = generated[schemas[name]].safeParse(response)
        assert.equal(error, undefined, `${name}: ${error?.message}`)
      }
    assert.equal(generated.workspaceReadResponse.safeParse({}).success, false)
    if (variant === 'A') assert.ok(generated.tokensCreateBody.safeParse({ label: 'می\u200cخواهم' }).success)

    const cli = 'node_modules/openapi-typescript/bin/cli.js'
    await run(process.execPath, [cli, file, '-o', `types-${variant}.ts`], { cwd: folder })
    const program = join(folder, `program-${variant}.ts`)
    const lines = Object.entries(responses).map(
      ([name, response]) =>
        `export const ${name}: ${types[name]}['content']['application/json'] = ${JSON.stringify(response)}`,
    )
    const wrong = `// @ts-expect-error\nexport const wrong: ${types.workspace} = { slug: 1 }`
    const text = [`import type { paths } from './types-${variant}.ts'`, ...lines, wrong].join('\n')
    writeFileSync(program, text)
    const flags = ['--noEmit', '--strict', '--allowImportingTsExtensions', '--module', 'nodenext']
    await run(join(root, 'node_modules/.bin/tsc'), [...flags, program], { cwd: folder }).catch((error) =>
      assert.fail(error.stdout),
    )
  })
