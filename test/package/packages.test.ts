// The npm packages, packed once and installed from their tarballs into empty projects.
import assert from 'node:assert/strict'
import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { rolldown } from 'rolldown'
import { atEnd, type Test } from '../support/cleanup.ts'
import { root } from '../support/process.ts'
import { addEdge, serve } from '../support/server.ts'
import { until } from '../support/until.ts'
import { type Project, pack } from './packed.ts'
import { openPage } from './page.ts'

const run = promisify(execFile)
const tsc = join(root, 'node_modules/.bin/tsc')
const typeRoots = [join(root, 'node_modules/@types')]

const install = pack({ after: after as Test['after'] })

test('adit, installed, serves its dashboard and API', adit)
for (const name of ['adit-client', 'adit-edge-sdk'])
  test(`${name} has no dependencies and a complete manifest`, (t) => manifest(t, name))
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
    ...compare('edge-sdk', ['VerifyResult', 'Report', 'Receipt']),
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

async function adit(t: TestContext): Promise<void> {
  const { folder } = install(t, 'adit', '--prefer-offline')
  const bin = join(folder, 'node_modules/.bin')
  const env = { PATH: `${bin}:${process.env.PATH}`, HOME: folder }
  const help = execFileSync(join(bin, 'adit'), ['--help'], { cwd: folder, env, encoding: 'utf8' })
  assert.match(help, /keys create/)
  const serving = spawn(join(bin, 'adit'), ['serve', '--json'], {
    cwd: folder,
    env: { ...env, ADIT_PORT: '0', ADIT_LOG_LEVEL: 'warn' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  atEnd(t, () => serving.kill('SIGKILL'))
  let output = ''
  serving.stdout.on('data', (chunk) => {
    output += chunk
  })
  await until('it serves', () => output.includes('\n'), 20_000)
  const { url, token } = JSON.parse(output)
  const page = await (await fetch(url)).text()
  const [script] = /assets\/index-[\w-]+\.js/.exec(page) ?? assert.fail('the page has no script')
  assert.equal((await fetch(`${url}/${script}`)).status, 200)
  assert.equal((await fetch(`${url}/docs`)).status, 200)

  const code = `import { createClient } from 'adit/client'
    import { createControlPlane, startVerifier } from 'adit/edge'
    const client = createClient({ baseUrl: process.argv[2] ?? '', apiKey: process.argv[3] ?? '' })
    const { slug }: { slug: string } = await client.workspace.read()
    startVerifier(createControlPlane({ url: process.argv[2] ?? '', credential: 'adit_edge_x' })).close()
    process.stdout.write(slug)`
  writeFileSync(join(folder, 'use.ts'), code)
  const used = execFileSync(join(bin, 'node'), ['use.ts', url, token], { cwd: folder, env, encoding: 'utf8' })
  assert.equal(used, 'default')
  assertCompiles(folder, { module: 'nodenext', types: ['node'], typeRoots })
}

function manifest(t: TestContext, name: string): void {
  const { folder } = install(t, name, '--offline')
  assert.deepEqual(
    readdirSync(join(folder, 'node_modules')).filter((entry) => !entry.startsWith('.')),
    [name],
  )
  const installed = join(folder, 'node_modules', name)
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
    engines,
  })
  const files = readdirSync(installed)
  for (const file of ['README.md', 'LICENSE', 'index.js', 'index.d.ts']) assert.ok(files.includes(file), file)
  const texts = files.map((file) => readFileSync(join(installed, file), 'utf8'))
  const bytes = texts.reduce((sum, text) => sum + text.length, 0)
  assert.ok(bytes < 100_000, `${bytes} bytes`)
  for (const text of texts) assert.doesNotMatch(text, /from ['"]typebox|contract\//)
}

/** The first example of the package's README. */
function example({ folder, write }: Project, name: string): string {
  const readme = readFileSync(join(folder, 'node_modules', name, 'README.md'), 'utf8')
  const [, code] = /```ts\n([\s\S]*?)```/.exec(readme) ?? assert.fail('the README has no example')
  return write('example.ts', code as string)
}

async function clientInNode(t: TestContext): Promise<void> {
  const server = await serve(t, { engine: 'sqlite' })
  const project = install(t, 'adit-client', '--offline')
  const { stdout } = await run(process.execPath, [example(project, 'adit-client')], {
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
  const { folder, write } = install(t, 'adit-client', '--offline')
  const input = write(
    'browser.ts',
    `import { createClient } from 'adit-client'
     const client = createClient({ baseUrl: location.origin, apiKey: '${server.key.token}' })
     const { id } = await client.tokens.create({ label: 'browser' })
     const { tokens } = await client.tokens.list()
     const { revoked } = await client.tokens.revoke({ id })
     document.title = \`\${tokens.length} \${tokens[0].label} \${revoked}\``,
  )
  const bundle = await rolldown({ input, cwd: folder, platform: 'browser', logLevel: 'warn' })
  const { output } = await bundle.generate({ format: 'esm' })
  const page = await openPage(t, server.url, output[0].code)
  if (!page) return t.skip('no browser is available')
  await until('the calls are done', async () => (await page.title()) !== '')
  assert.equal(await page.title(), '2 browser true')
}

async function edgeSdkInNode(t: TestContext): Promise<void> {
  const server = await serve(t, { engine: 'sqlite' })
  const edge = await addEdge(server)
  const project = install(t, 'adit-edge-sdk', '--offline')
  const file = example(project, 'adit-edge-sdk')
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

function types(t: TestContext): void {
  const client = install(t, 'adit-client', '--offline')
  const edgeSdk = install(t, 'adit-edge-sdk', '--offline')
  example(client, 'adit-client')
  example(edgeSdk, 'adit-edge-sdk')
  client.write(
    'mistakes.ts',
    `import { createClient } from 'adit-client'
     const client = createClient({ baseUrl: '', apiKey: '' })
     // @ts-expect-error: the name of the field
     await client.tokens.create({ lable: 'x' })
     // @ts-expect-error: the type of the field
     export const slug: number = (await client.workspace.read()).slug
     // @ts-expect-error: variant B does not write
     createClient<'B'>({ baseUrl: '', apiKey: '' }).tokens.create`,
  )
  edgeSdk.write(
    'mistakes.ts',
    `import { createControlPlane, startVerifier } from 'adit-edge-sdk'
     const verifier = startVerifier(createControlPlane({ url: '', credential: '' }))
     // @ts-expect-error: only a valid key has a workspace
     export const { workspace } = await verifier.verify('')`,
  )
  for (const { folder } of [client, edgeSdk]) {
    assertCompiles(folder, { module: 'nodenext', types: ['node'], typeRoots, skipLibCheck: true })
    // Also checks the declarations themselves, which must not need the types of Node.
    rmSync(join(folder, 'example.ts'))
    const bundler = { module: 'esnext', moduleResolution: 'bundler', lib: ['esnext', 'dom'], types: [] }
    assertCompiles(folder, { ...bundler, skipLibCheck: false, skipDefaultLibCheck: true })
  }
}

/** With a tsconfig.json for the options, or with the one that is in the folder. */
function assertCompiles(folder: string, options?: object): void {
  const compilerOptions = { noEmit: true, strict: true, target: 'esnext', ...options }
  if (options)
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }))
  const { status, stdout } = spawnSync(tsc, ['-p', folder, '--pretty', 'false'], { encoding: 'utf8' })
  assert.equal(status, 0, stdout)
}
