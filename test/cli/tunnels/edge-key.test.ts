// Which edges get the API key of a profile.
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Test } from '../../support/cleanup.ts'
import { createFolder } from '../../support/databases/create.ts'
import { startMinimalEdge } from '../../support/edges/minimal-edge.ts'
import { run, startProcess } from '../../support/processes/process.ts'
import { atTerminal, hasTerminal, NO_TERMINAL } from '../../support/processes/terminal.ts'
import { until } from '../../support/until.ts'

/** A home folder with a profile. */
function createHome(t: Test, profile: object) {
  const folder = createFolder(t)
  const file = join(folder, 'adit/profiles.json')
  mkdirSync(join(folder, 'adit'))
  const saved = { url: 'https://adit.example.com', apiKey: 'adit_key', ...profile }
  writeFileSync(file, JSON.stringify({ current: 'work', profiles: { work: saved } }))
  return { env: { XDG_CONFIG_HOME: folder, HOME: folder }, file }
}

/** A name that is not loopback and does not resolve: nothing is ever sent to it. */
const ELSEWHERE = 'https://edge.invalid'

test('the key of a profile is not sent to an edge of another host, or without TLS', async (t) => {
  const { env } = createHome(t, {})
  for (const [edge, way] of [
    [ELSEWHERE, 'https://edge.invalid'],
    ['https://adit.example.com.evil.invalid', 'https://adit.example.com.evil.invalid'],
    ['https://localhost.evil.invalid', 'https://localhost.evil.invalid'],
    ['https://evil.adit.example.com', 'https://evil.adit.example.com'],
    ['http://adit.example.com', 'http://adit.example.com, without encryption'],
  ] as const)
    for (const [args, more] of [
      [['--edge', edge], {}],
      [[], { ADIT_EDGE_URL: edge }],
    ] as const) {
      const { code, stderr } = await run(t, ['tunnel', '3000', ...args], { ...env, ...more })
      assert.equal(code, 2, edge)
      assert.equal(
        stderr,
        `adit: The API key of profile "work" is for https://adit.example.com, and is not sent to ${way}. ` +
          'Leave out --edge to use the edge of the server, set ADIT_API_KEY, or run the command once in a ' +
          'terminal to confirm this edge.\n',
      )
    }
})

test('an edge on this machine, on the host of the server or named with ADIT_API_KEY gets the key', async (t) => {
  const edge = await startMinimalEdge(t)
  const { port } = new URL(edge.url)
  const expectOpen = async (env: Record<string, string>, url: string) => {
    const before = edge.connections.length
    startProcess(t, ['tunnel', '3000', '--edge', url], env)
    assert.equal((await edge.connection(before)).authorization, 'Bearer adit_key')
  }
  await expectOpen(createHome(t, {}).env, edge.url)
  await expectOpen(createHome(t, {}).env, `http://localhost:${port}`)
  for (const [profile, url, env] of [
    [{ url: 'http://server.invalid:8080' }, 'http://server.invalid:8081', {}],
    [{ url: 'https://server.invalid' }, 'https://server.invalid:8443', {}],
    [{ edges: [ELSEWHERE] }, ELSEWHERE, {}],
    [{}, ELSEWHERE, { ADIT_API_KEY: 'adit_other' }],
  ] as const) {
    const home = createHome(t, profile)
    const tunnel = startProcess(t, ['tunnel', '3000', '--edge', url], { ...home.env, ...env })
    // It tries to connect.
    await tunnel.waitFor(/^! The edge at \S+ cannot be reached: /m, 'stderr')
  }
})

test('at a terminal another edge is confirmed once', {
  skip: hasTerminal ? false : NO_TERMINAL,
}, async (t) => {
  const { env, file } = createHome(t, { keyId: 'tok_1' })
  const args = ['tunnel', '3000', '--edge', ELSEWHERE]
  const question = `Send it to ${ELSEWHERE}? [y/N] `
  const denied = atTerminal(t, args, env, 200)
  await denied.reply(question, 'n\r')
  assert.equal(await denied.ended, 2)
  assert.match(denied.output(), /The edge was not confirmed\./)
  const confirmed = atTerminal(t, args, env, 200)
  await confirmed.reply(question, 'y\r')
  await confirmed.reply('cannot be reached', '\u0003')
  await confirmed.ended
  const { profiles } = JSON.parse(readFileSync(file, 'utf8'))
  assert.deepEqual(profiles.work.edges, [ELSEWHERE])
  assert.equal(profiles.work.keyId, 'tok_1')
  const again = atTerminal(t, args, env, 200)
  await again.reply('cannot be reached', '\u0003')
  await again.ended
  assert.ok(!again.output().includes('[y/N]'))
})

test('a confirmation that arrives after `adit logout` or `adit login` changes no profile', {
  skip: hasTerminal ? false : NO_TERMINAL,
}, async (t) => {
  for (const profiles of [
    {},
    { work: { url: 'https://adit.example.com', apiKey: 'adit_other' } },
    { work: { url: 'https://other.example.com', apiKey: 'adit_key' } },
  ]) {
    const { env, file } = createHome(t, {})
    const terminal = atTerminal(t, ['tunnel', '3000', '--edge', ELSEWHERE], env, 200)
    await until('the question', () => terminal.output().includes('[y/N] '))
    writeFileSync(file, JSON.stringify({ current: 'work', profiles }))
    await terminal.reply('[y/N] ', 'y\r')
    await terminal.reply('cannot be reached', '\u0003')
    await terminal.ended
    assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')).profiles, profiles)
  }
})
