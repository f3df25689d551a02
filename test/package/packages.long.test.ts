// The npm packages, packed once and installed from their tarballs into empty projects.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { rolldown } from 'rolldown'
import { serve, serveWithEdge } from '../support/api/server.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { root } from '../support/processes/process.ts'
import { until } from '../support/until.ts'
import { assertCompiles, assertServes, typeRoots } from './installed.ts'
import { pack } from './packed.ts'
import { openPage } from './page.ts'

const run = promisify(execFile)

/** Largest unpacked size. TypeBox, which the contract uses and none of them may ship, is 2 MB. */
const BYTES_MAX = { 'adit-client': 60_000, 'adit-edge-sdk': 160_000, 'adit-tunnel': 150_000 }
const libraries = Object.keys(BYTES_MAX) as (keyof typeof BYTES_MAX)[]
const packages = pack({ after: after as Test['after'] })
/** A project with all libraries. */
const project = packages.install(libraries, '--offline')

test('adit, installed, serves its dashboard and API', (t) => assertServes(t, packages.link()))
test('the libraries have no dependencies', () => {
  const installed = readdirSync(join(project.folder, 'node_modules'))
  assert.deepEqual(
    installed.filter((entry) => !entry.startsWith('.')),
    libraries,
  )
})
for (const name of libraries) test(`${name} has a complete manifest`, () => manifest(name))
test('adit-client works in Node', clientInNode)
test('adit-client works in a browser', clientInBrowser)
test('adit-edge-sdk verifies keys and reports usage', edgeSdkInNode)
test('the types compile strictly, and reject mistakes', types)

test('the published types of the API are those of the contract', (t) => {
  const folder = mkdtempSync(join(root, 'test/package/compiled-'))
  atEnd(t, () => rmSync(folder, { recursive: true }))
  const compare = (part: string, names: string[]) =>
    names.map((name) => {
      const [source, published] = ['src', 'dist'].map(
        (top) => `import('../../../${top}/${part}/api.ts').${name}`,
      )
      return `const ${part.replace('-', '')}${name}: Same<${source}, ${published?.replace('.ts', '.js')}> = true\n`
    })
  const equal = 'type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false\n'
  const lines = [
    ...compare('client', ['Operations', 'ApiFault', 'Variant']),
    ...compare('edge-sdk', [
      'VerifyResult',
      'UsageQuota',
      'Report',
      'Receipt',
      'TunnelClaim',
      'ClaimResult',
      'TunnelSync',
      'SyncResult',
    ]),
  ]
  writeFileSync(join(folder, 'same.ts'), equal + lines.map((line) => `export ${line}`).join(''))
  const options = {
    extends: '../../../tsconfig.json',
    compilerOptions: { incremental: false },
    include: ['*.ts'],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(options))
  assertCompiles(folder)
})

function manifest(name: keyof typeof BYTES_MAX): void {
  const installed = join(project.folder, 'node_modules', name)
  const { version, engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const { description, ...fields } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
  assert.ok(description)
  assert.deepEqual(fields, {
    name,
    version,
    license: 'Apache-2.0',
    type: 'module',
    exports: { '.': { types: './index.d.ts', default: './index.js' }, './package.json': './package.json' },
    types: './index.d.ts',
    sideEffects: false,
    engines: name === 'adit-tunnel' ? { node: '>=20' } : engines,
  })
  const files = readdirSync(installed, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(installed, join(parentPath, name)))
  for (const file of ['README.md', 'LICENSE', 'index.js', 'index.d.ts']) assert.ok(files.includes(file), file)
  const texts = files.map((file) => readFileSync(join(installed, file), 'utf8'))
  const bytes = texts.reduce((sum, text) => sum + text.length, 0)
  assert.ok(bytes < BYTES_MAX[name], `${bytes} bytes`)
  for (const text of texts) assert.doesNotMatch(text, /from ['"]typebox|contract\//)
}

/** The first example of the package's README. */
function example(name: string): string {
  const readme = readFileSync(join(project.folder, 'node_modules', name, 'README.md'), 'utf8')
  const [, code] = /```ts\n([\s\S]*?)```/.exec(readme) ?? assert.fail('the README has no example')
  return project.write(`${name}.ts`, code as string)
}

async function clientInNode(t: TestContext): Promise<void> {
  const server = await serve(t, { engine: 'sqlite' })
  const { stdout } = await run(process.execPath, [example('adit-client')], {
    cwd: project.folder,
    env: { ADIT_URL: server.url, ADIT_API_KEY: server.key.token },
  })
  const [, id] = /^(tok_\w+) ci active$/m.exec(stdout) ?? assert.fail(stdout)
  assert.match(stdout, /^not_found 404$/m)
  const { tokens } = (await server.call('GET', '/tokens')).json
  const created = tokens.find((token: { id: string }) => token.id === id)
  assert.ok(created.revokedAt !== null)
}

async function clientInBrowser(t: TestContext): Promise<void> {
  const server = await serve(t, { engine: 'sqlite' })
  const input = project.write(
    'browser.js',
    `import { createClient } from 'adit-client'
     const client = createClient({ baseUrl: location.origin, apiKey: '${server.key.token}' })
     const { id } = await client.tokens.create({ label: 'browser' })
     const { tokens } = await client.tokens.list()
     const { revoked } = await client.tokens.revoke({ id })
     document.title = \`\${tokens.length} \${tokens[0].label} \${revoked}\``,
  )
  const bundle = await rolldown({ input, cwd: project.folder, platform: 'browser', logLevel: 'warn' })
  const { output } = await bundle.generate({ format: 'esm' })
  const page = await openPage(t, server.url, output[0].code)
  if (!page) return t.skip('no browser is available')
  await until('the calls are done', async () => (await page.title()) !== '')
  assert.equal(await page.title(), '2 browser true')
}

async function edgeSdkInNode(t: TestContext): Promise<void> {
  const { server, edge } = await serveWithEdge(t, { engine: 'sqlite' })
  const file = example('adit-edge-sdk')
  const verify = async (key: string) => {
    const env = { ADIT_URL: server.url, ADIT_EDGE_KEY: edge.token, API_KEY: key }
    return (await run(process.execPath, [file], { cwd: project.folder, env })).stdout
  }
  assert.match(await verify(server.key.token), /^reported usage of acme$/m)
  const usage = (await server.call('GET', '/usage?days=1')).json
  assert.deepEqual([usage.totalBytes, usage.eventCount], [120 + 4096, 2])
  const other = (await server.post('/tokens', {})).json
  await server.call('DELETE', `/tokens/${other.id}`)
  assert.match(await verify(other.token), /^rejected: revoked$/m)
}

function types(): void {
  const examples = libraries.map(example)
  project.write(
    'client-mistakes.ts',
    `import { createClient } from 'adit-client'
     const client = createClient({ baseUrl: '', apiKey: '' })
     // @ts-expect-error: the name of the field
     await client.tokens.create({ lable: 'x' })
     // @ts-expect-error: the type of the field
     export const slug: number = (await client.workspace.read()).slug
     // @ts-expect-error: variant B does not write
     createClient<'B'>({ baseUrl: '', apiKey: '' }).tokens.create`,
  )
  project.write(
    'edge-sdk-mistakes.ts',
    `import { createControlPlane, startVerifier } from 'adit-edge-sdk'
     const verifier = startVerifier(createControlPlane({ url: '', credential: '' }))
     // @ts-expect-error: only a valid key has a workspace
     export const { workspace } = await verifier.verify('')`,
  )
  assertCompiles(project.folder, { module: 'nodenext', types: ['node'], typeRoots, skipLibCheck: true })
  // Also checks the declarations themselves, which must not need the types of Node.
  for (const file of examples) rmSync(file)
  const bundler = { module: 'esnext', moduleResolution: 'bundler', lib: ['esnext', 'dom'], types: [] }
  assertCompiles(project.folder, { ...bundler, skipLibCheck: false, skipDefaultLibCheck: true })
}
