// The client's types: mistakes do not compile, each for the expected reason.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { root } from '../support/processes/process.ts'

const cases: [what: string, code: string, error: RegExp | undefined][] = [
  [
    'correct calls',
    "await a.tokens.create({ label: 'x' }); await a.usage.read(); const n: string = (await a.workspace.read()).tunnelBase; n",
    undefined,
  ],
  [
    'a misspelled parameter',
    "await a.tokens.create({ lable: 'x' })",
    /TS(2353|2561).*'lable' does not exist/,
  ],
  [
    'a parameter of the wrong type',
    "await a.usage.read({ days: '7' })",
    /TS2322.*'string' is not assignable to type 'number'/,
  ],
  ['a missing parameter', 'await a.tokens.revoke()', /TS2554|TS2345/],
  [
    'a field that the response does not have',
    '(await a.workspace.read()).exampleUrl',
    /TS2339.*'exampleUrl'/,
  ],
  ['a secret in the list', '(await a.tokens.list()).tokens[0]?.token', /TS2339.*'token'/],
  ['a creation in variant B', 'await b.tokens.create({})', /TS2339.*'create'/],
  ['a revocation in variant B', "await b.tokens.revoke({ id: 'x' })", /TS2339.*'revoke'/],
  ['a field of variant A in variant B', '(await b.usage.read()).peakTunnels', /TS2339.*'peakTunnels'/],
  [
    'tunnels, names and edges',
    "const { tunnels, next } = await a.tunnels.list({ name: 'x', limit: 5 }); const n: number | undefined = tunnels[0]?.requests; const c: string | null = next; await a.tunnels.close({ id: 'x' }); await b.tunnels.read({ id: 'x' }); await b.names.list(); await b.edges.list({ cursor: 'x' }); n; c",
    undefined,
  ],
  ['closing a tunnel in variant B', "await b.tunnels.close({ id: 'x' })", /TS2339.*'close'/],
  [
    'an error code that is none',
    "try { await a.workspace.read() } catch (e) { if (e instanceof AditError && e.fault.error === 'nope') e }",
    /TS2367/,
  ],
]

test('the compiler accepts what the contract allows, and rejects everything else', (t) => {
  const folder = mkdtempSync(join(root, 'test/client/compiled-'))
  t.after(() => rmSync(folder, { recursive: true }))
  for (const [index, [, code]] of cases.entries())
    writeFileSync(
      join(folder, `case${index}.ts`),
      `import { AditError, createClient } from '../../../src/client/index.ts'\n` +
        `const options = { baseUrl: 'http://x', apiKey: 'k' }\n` +
        `export const [a, b] = [createClient(options), createClient<'B'>(options)]\nexport { AditError }\n${code}\n`,
    )
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ extends: '../../../tsconfig.json', compilerOptions: { paths: {} }, include: ['*.ts'] }),
  )
  const { stdout } = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', folder, '--pretty', 'false'], {
    encoding: 'utf8',
  })
  for (const [index, [what, , error]] of cases.entries()) {
    const lines = stdout.split('\n').filter((line) => line.includes(`case${index}.ts`))
    if (error) assert.match(lines.join('\n'), error, `${what}: ${stdout}`)
    else assert.deepEqual(lines, [], what)
  }
})
