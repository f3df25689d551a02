// The files in deploy/ contain settings, paths and timeouts of the program. They are checked against it, and
// by the tools that read them if those are installed.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { faults } from '../../src/contract/faults.ts'
import { edgeSettings, readEdgeConfig } from '../../src/server/config/edge.ts'
import { readConfig, settings } from '../../src/server/config/server.ts'
import { createFolder } from '../support/databases/create.ts'
import { root } from '../support/processes/process.ts'

const read = (path: string) => readFileSync(join(root, path), 'utf8')
const compose = read('deploy/compose.yaml')
const unit = read('deploy/adit.service')
const dockerfile = read('deploy/Dockerfile')
const edgeUnit = read('deploy/adit-edge.service')
const proxy = read('deploy/Caddyfile')

const seconds = (text: string, pattern: RegExp): number => {
  const found = pattern.exec(text)?.[1]
  assert.ok(found, `${pattern} not found`)
  return Number(found)
}

/** Substitutes variables as compose does, with every required one set. */
const substitute = (value: string) =>
  value
    .replace(/\$\{\w+:-([^}]*)\}/g, '$1')
    .replace(/\$\{\w+:\?[^}]*\}/g, 'x'.repeat(40))
    .replace(/^"(.*)"$/, '$1')

const environmentIn = (pattern: RegExp): Record<string, string> =>
  Object.fromEntries(
    [...compose.matchAll(pattern)].map(([, name, value]) => [name, substitute(value as string)]),
  )
/** Shared by all nodes. */
const nodeEnvironment = environmentIn(/^ {4}(ADIT_\w+): (.+)$/gm)
const edgeEnvironment = environmentIn(/^ {6}(ADIT_\w+): (.+)$/gm)
/** Settings of an edge that its table does not have. */
const edgeAccess = ['ADIT_URL', 'ADIT_EDGE_KEY']
const known = new Set([...Object.keys(settings), ...Object.keys(edgeSettings), ...edgeAccess])

test('every setting in deploy/ exists and has a valid value', () => {
  for (const text of [compose, unit, edgeUnit, dockerfile, proxy])
    for (const [name] of text.matchAll(/\bADIT_[A-Z_]+\b/g)) assert.ok(known.has(name), name)
  assert.ok(Object.keys(nodeEnvironment).length > 5)
  assert.equal(readConfig(nodeEnvironment).database.engine, 'postgres')
  assert.equal(readConfig(nodeEnvironment).baseUrl, 'https://localhost')
  assert.equal(readEdgeConfig(edgeEnvironment).publicEndpoint?.scheme, 'https')
  for (const [text, readSettings] of [
    [unit, readConfig],
    [dockerfile, readConfig],
    [edgeUnit, readEdgeConfig],
  ] as const) {
    const assignments = [...text.matchAll(/^(?:Environment=|ENV ).*$/gm)].flatMap(([line]) => [
      ...line.matchAll(/(ADIT_\w+)=(\S+)/g),
    ])
    assert.ok(assignments.length > 0)
    readSettings(Object.fromEntries(assignments.map(([, name, value]) => [name, value])))
  }
})

test('the image has a supported Node and runs it without a shell', () => {
  const least = Number(/^>=([\d.]+)$/.exec(JSON.parse(read('package.json')).engines.node)?.[1])
  const versions = [...dockerfile.matchAll(/^FROM node:(\d+)/gm)].map(([, major]) => Number(major))
  assert.equal(versions.length, 2)
  for (const version of versions) assert.ok(version >= least)
  for (const word of ['ENTRYPOINT', 'CMD']) assert.match(dockerfile, new RegExp(`^${word} \\[".*"\\]$`, 'm'))
  assert.match(dockerfile, /^HEALTHCHECK .* CMD \["node",/m)
  assert.match(dockerfile, /\/healthz/)
  assert.ok(dockerfile.indexOf('USER node') < dockerfile.indexOf('ENTRYPOINT'))
})

test('the files that deploy/ uses exist and are in the build context of the image', () => {
  const sent = read('.dockerignore')
    .split('\n')
    .flatMap((line) => (line.startsWith('!') ? line.slice(1) : []))
  const built = ['dist', 'web/dist', 'node_modules']
  const copied = [...dockerfile.matchAll(/^COPY (?:--from=build )?(.+) \.\/\S*$/gm)].flatMap(
    ([, paths = '']) => paths.split(' ').map((path) => path.replace('/app/', '')),
  )
  assert.ok(copied.length >= 8, copied.join())
  // The build also needs the sources and the compiler's settings.
  for (const path of [...copied, 'src', 'web', 'tsconfig.json', 'tsconfig.build.json']) {
    if (built.includes(path)) continue
    assert.ok(existsSync(join(root, path)), path)
    assert.ok(sent.includes(path), `${path} is excluded by .dockerignore`)
  }
  assert.ok(existsSync(join(root, 'deploy', /context: (\S+)/.exec(compose)?.[1] as string, 'package.json')))
  assert.ok(existsSync(join(root, /dockerfile: (\S+)/.exec(compose)?.[1] as string)))
  const mounted = [...compose.matchAll(/"(\.\/\S+?):/g)].map(([, path = '']) => path)
  assert.ok(mounted.length > 1)
  for (const path of mounted) assert.ok(existsSync(join(root, 'deploy', path)), path)
  for (const text of [unit, edgeUnit]) {
    const [, program = '', launcher = ''] =
      /^ExecStart=(\S+) (?:--\S+ )?(\S+) (?:serve|edge)$/m.exec(text) ?? []
    const installed = `${/^WorkingDirectory=(\S+)$/m.exec(text)?.[1]}/`
    for (const path of [program, launcher]) assert.ok(path.startsWith(installed), path)
    assert.ok(existsSync(join(root, launcher.slice(installed.length))))
  }
})

test('the proxy has every node and the edge, checks /readyz, and is trusted by its address', () => {
  const nodes = [...compose.matchAll(/^ {2}([\w-]+): \*node$/gm)].map(([, name]) => name)
  assert.equal(nodes.length, 3)
  assert.equal(
    /^ {6}NODES: (.+)$/m.exec(compose)?.[1],
    nodes.map((name) => `${name}:${nodeEnvironment.ADIT_PORT}`).join(' '),
  )
  assert.equal(/^ {6}EDGE: (.+)$/m.exec(compose)?.[1], `edge:${edgeEnvironment.ADIT_EDGE_PORT}`)
  assert.equal(edgeEnvironment.ADIT_URL, `http://nodes:${nodeEnvironment.ADIT_PORT}`)
  const address = /ipv4_address: (\S+)/.exec(compose)?.[1]
  assert.equal(address, nodeEnvironment.ADIT_TRUSTED_PROXIES)
  assert.equal(address, edgeEnvironment.ADIT_EDGE_TRUSTED_PROXIES)
  // Automatic addresses are in the upper half of the subnet.
  const [subnet, range] = [/subnet: (\S+)\.0\/24$/m, /ip_range: (\S+)\.128\/25$/m].map(
    (pattern) => pattern.exec(compose)?.[1],
  )
  assert.equal(range, subnet)
  assert.match(nodeEnvironment.ADIT_TRUSTED_PROXIES ?? '', new RegExp(`^${subnet}\\.\\d\\d$`))
  assert.match(proxy, /^\t\thealth_uri \/readyz$/m)
  assert.match(proxy, new RegExp(`NODES:127\\.0\\.0\\.1:${settings.ADIT_PORT.fallback}}`))
  assert.match(proxy, new RegExp(`EDGE:127\\.0\\.0\\.1:${edgeSettings.ADIT_EDGE_PORT.fallback}}`))
})

test('if no node is ready, the proxy responds like a node', () => {
  const { status, example } = faults.unavailable
  const [, body, code] = /^\t\trespond `(.+)` (\d+)$/m.exec(proxy) ?? []
  assert.equal(Number(code), status)
  assert.deepEqual(JSON.parse(body as string), example)
})

test('timeouts match: the proxy notices a node before it stops, it drains before it is killed, no stream is cut', () => {
  const source = (path: string, name: string) =>
    Number(new RegExp(`${name} = ([\\d_]+)`).exec(read(path))?.[1]?.replaceAll('_', '')) / 1000
  const drain = source('src/server/http/server/drain.ts', 'GRACE_PERIOD_MS')
  const idle = [
    source('src/server/http/server/guarded-server.ts', 'KEEP_ALIVE_MS'),
    source('src/edge/listen.ts', 'IDLE_TIMEOUT_MS'),
  ]
  const delay = Number(nodeEnvironment.ADIT_STOP_DELAY)
  const noticedAfter = seconds(proxy, /health_interval (\d+)s/) + seconds(proxy, /health_timeout (\d+)s/)
  assert.ok(noticedAfter < delay, 'ADIT_STOP_DELAY is shorter than the health checks need')
  assert.ok(seconds(compose, /^ {2}stop_grace_period: (\d+)s/m) >= delay + drain + 5)
  const caddy = compose.slice(compose.indexOf('\n  caddy:'))
  assert.ok(seconds(caddy, /stop_grace_period: (\d+)s/) > seconds(proxy, /grace_period (\d+)s/))
  const edgeDrain = source('src/edge/shutdown.ts', 'GRACE_PERIOD_MS')
  const report = source('src/edge-sdk/control-plane.ts', 'REPORT_TIMEOUT_MS')
  assert.ok(seconds(edgeUnit, /^TimeoutStopSec=(\d+)$/m) >= edgeDrain + report + 5)
  assert.ok(
    seconds(compose, /^ {4}stop_grace_period: (\d+)s\n {4}environment:\n {6}ADIT_URL/m) >=
      edgeDrain + report + 5,
  )
  assert.ok(seconds(unit, /^TimeoutStopSec=(\d+)$/m) >= drain + 20 + 5)
  const keepAlive = [...proxy.matchAll(/keepalive (\d+)s/g)].map(([, text]) => Number(text))
  assert.equal(keepAlive.length, idle.length)
  idle.forEach((node, index) => {
    assert.ok((keepAlive[index] as number) < node)
  })
})

test('Caddy accepts its configuration', (t) => {
  if (spawnSync('caddy', ['version']).status !== 0) return t.skip('Caddy is not installed')
  const file = join(root, 'deploy/Caddyfile')
  for (const options of ['', 'local_certs', 'email ann@example.com']) {
    const env = { PATH: process.env.PATH ?? '', HOME: createFolder(t), CADDY_GLOBAL_OPTIONS: options }
    const { status, stderr } = spawnSync('caddy', ['validate', '--config', file, '--adapter', 'caddyfile'], {
      env,
    })
    assert.equal(status, 0, String(stderr))
    assert.doesNotMatch(String(stderr), /not formatted/)
  }
})

test('systemd accepts the units', (t) => {
  if (spawnSync('systemd-analyze', ['--version']).status !== 0) return t.skip('systemd is not installed')
  for (const [name, text] of Object.entries({ 'adit.service': unit, 'adit-edge.service': edgeUnit })) {
    // systemd checks that the program exists; it is elsewhere on this machine.
    const file = join(createFolder(t), name)
    writeFileSync(file, text.replaceAll(/^ExecStart=\S+/gm, `ExecStart=${process.execPath}`))
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file])
    assert.deepEqual([status, String(stderr)], [0, ''])
  }
})
