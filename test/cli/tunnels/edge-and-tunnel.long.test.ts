// The messages of `adit edge`, `adit tunnel` and `adit serve`.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { createDatabase, createFolder } from '../../support/databases/create.ts'
import { SECRET } from '../../support/databases/migrated-databases.ts'
import { startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import { fetchHost, startPlane } from '../../support/edges/tunnels.ts'
import { assertFailed, createOperator } from '../../support/processes/commands.ts'
import { freePort } from '../../support/processes/ports.ts'
import { run, startProcess } from '../../support/processes/process.ts'

test('a tunnel target is a port, host:port or http://host:port', async (t) => {
  const { edge, keys, local } = await startStandaloneEdge(t, ['acme'])
  const env = { ADIT_API_KEY: keys[0] as string, ADIT_EDGE_URL: edge.url }
  for (const [target, url] of [
    [`${local.port}`, `http://localhost:${local.port}`],
    [`localhost:${local.port}`, `http://localhost:${local.port}`],
    [`http://localhost:${local.port}/`, `http://localhost:${local.port}`],
    [`127.0.0.1:${local.port}`, `http://127.0.0.1:${local.port}`],
  ] as const) {
    const tunnel = startProcess(t, ['tunnel', target], env)
    await tunnel.waitFor(new RegExp(`^Forwarding to ${url}\\. Press Ctrl-C to stop\\.$`, 'm'), 'stderr')
    const [publicUrl] = await tunnel.waitFor(/^http:\/\/\S+$/m)
    // The local server listens on one of the addresses of localhost.
    const { status } = await fetchHost(edge, new URL(publicUrl).host)
    assert.ok(status === 200 || target.startsWith('127'), `${target}: ${status}`)
    const { code, stderr } = await tunnel.stop('SIGINT')
    assert.equal(code, 0)
    assert.match(stderr, /^\d\d:\d\d:\d\d {2}\d{3} +\d+ ms {2}\d+ B in, \d+ B out +GET +\/$/m)
    assert.match(stderr, /^Tunnel closed\.$/m)
  }
})

test('an edge retries an unreachable control plane, and is ready once it responds', async (t) => {
  const plane = await startPlane(t)
  const credential = await plane.admin('edge', 'create', 'edge-1')
  await plane.stop()
  const env = {
    ADIT_URL: plane.url,
    ADIT_EDGE_KEY: credential,
    ADIT_EDGE_PORT: '0',
    ADIT_EDGE_FOLDER: join(createFolder(t), 'edge'),
  }
  const edge = startProcess(t, ['edge'], env)
  await edge.waitFor(
    /^Not ready: the control plane cannot be reached\. .*\nEdge listening on http\S+; it retries/m,
  )
  const asJson = startProcess(t, ['edge', '--json'], {
    ...env,
    ADIT_EDGE_FOLDER: join(createFolder(t), 'edge'),
  })
  const [line] = await asJson.waitFor(/^\{.*\}$/m)
  assert.equal(JSON.parse(line).controlPlane, 'unreachable')
  await plane.restart()
  await edge.waitFor(/"msg":"ready: keys verified by http\S+"/, 'stderr')
  const { stdout, stderr } = await edge.stop()
  assert.ok(!stdout.includes('keys verified by'), 'success was announced')
  assert.match(stderr, /Cannot open the stream of revocations: http\S+ cannot be reached: /)
  assert.ok(!stderr.includes('unreachable'), stderr)

  const ready = startProcess(t, ['edge'], { ...env, ADIT_EDGE_FOLDER: join(createFolder(t), 'edge') })
  const [, url = '', port = ''] = await ready.waitFor(
    /^Edge listening on (http\S+:(\d+)); keys verified by http\S+\n\n {2}Open a tunnel {2}adit tunnel 3000 --edge \1$/m,
  )
  assert.ok(url && Number(port) > 0)
})

test('an edge name can be used once, until its edge is revoked', async (t) => {
  const { adit } = await createOperator(t)
  const create = () => adit('edge', 'create', 'fra-1', '--json')
  const { id } = JSON.parse((await create()).stdout)
  const again = await create()
  assert.equal(again.code, 1)
  assert.deepEqual(JSON.parse(again.stderr), {
    error: 'conflict',
    message:
      'An edge named "fra-1" already exists. Choose another name, or revoke it first with ' +
      `\`adit admin edge revoke ${id}\`.`,
  })
  const unconfirmed = await adit('edge', 'revoke', id)
  assertFailed(unconfirmed, 2, /is the last active edge\. Confirm with --yes\./)
  assert.equal((await adit('edge', 'revoke', id, '--yes')).code, 0)
  assert.equal((await create()).code, 0)
})

test('creating a workspace prints the commands for what it lacks, and they work when pasted', async (t) => {
  const { env, adit } = await createOperator(t)
  const { stderr } = await adit('workspace', 'create', 'acme')
  assert.match(stderr, /^It has no API key and no owner yet, and edges reject its tunnels/)
  const printed = [...stderr.matchAll(/^ {2}adit (.*)$/gm)].map(([, line = '']) => line)
  assert.deepEqual(printed, [
    'admin key create --workspace acme',
    'admin user invite you@example.com --workspace acme --role owner',
    'admin workspace provision acme',
  ])
  for (const line of printed) assert.equal((await run(t, line.split(' '), env)).code, 0, line)
  const provisioned = await adit('workspace', 'create', 'beta', '--provisioned')
  assert.ok(!provisioned.stderr.includes('provision beta'))
})

const invite = 'admin user invite ann@example.com --workspace acme --role owner'.split(' ')

for (const [engine, state, message] of [
  ['sqlite', 'without users', /There are no users yet\./],
  ['sqlite', 'with an invitation', /Nobody has accepted an invitation yet\./],
  ['postgres', 'that is empty', /The database is empty\./],
] as const)
  test(`${engine} ${state}: serve prints its URL first, and next steps that work when pasted`, async (t) => {
    const env = {
      ADIT_DATABASE_URL: await createDatabase(t, engine),
      ADIT_SECRET: SECRET,
      ADIT_PORT: String(await freePort()),
    }
    if (engine === 'sqlite') {
      await run(t, ['admin', 'migrate'], env)
      await run(t, ['admin', 'workspace', 'create', 'acme'], env)
      if (state === 'with an invitation') await run(t, invite, { ...env, ADIT_BASE_URL: 'http://localhost' })
    }
    const server = startProcess(t, ['serve'], env)
    await server.waitFor(/same ADIT_DATABASE_URL as this server/)
    const { stdout } = await server.stop()
    assert.match(stdout, new RegExp(`^\\nAdit [\\d.]+ listening on http://127.0.0.1:${env.ADIT_PORT}\\n`))
    assert.match(stdout, message)
    const printed = [...stdout.matchAll(/^ {2}adit (.*)$/gm)].map(([, line = '']) => line)
    assert.ok(printed.length >= 2)
    for (const line of printed) assert.equal((await run(t, line.split(' '), env)).code, 0, line)
  })
