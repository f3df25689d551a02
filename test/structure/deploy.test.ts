// The files in deploy/ contain settings, paths and timeouts of the program. They are checked against it, and by the
// tools that read them if those are installed.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readConfig, settings } from '../../src/config.ts'
import { faults } from '../../src/contract/faults.ts'
import { createFolder } from '../support/databases.ts'
import { root } from '../support/process.ts'

const read = (path: string) => readFileSync(join(root, path), 'utf8')
const compose = read('deploy/compose.yaml')
const unit = read('deploy/adit.service')
const dockerfile = read('deploy/Dockerfile')
const proxy = read('deploy/haproxy.cfg')

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

/** The environment that all nodes share. */
const nodeEnvironment = Object.fromEntries(
  [...compose.matchAll(/^ {4}(ADIT_\w+): (.+)$/gm)].map(([, name, value]) => [
    name,
    substitute(value as string),
  ]),
)

test('every setting in deploy/ exists and has a valid value', () => {
  for (const text of [compose, unit, dockerfile, proxy])
    for (const [name] of text.matchAll(/\bADIT_[A-Z_]+\b/g)) assert.ok(Object.hasOwn(settings, name), name)
  assert.ok(Object.keys(nodeEnvironment).length > 5)
  assert.equal(readConfig(nodeEnvironment).database.engine, 'postgres')
  for (const text of [unit, dockerfile]) {
    const assignments = [...text.matchAll(/^(?:Environment=|ENV ).*$/gm)].flatMap(([line]) => [
      ...line.matchAll(/(ADIT_\w+)=(\S+)/g),
    ])
    assert.ok(assignments.length > 0)
    readConfig(Object.fromEntries(assignments.map(([, name, value]) => [name, value])))
  }
})

test('the image has a supported Node and runs it without a shell', () => {
  const least = Number(/^>=(\d+)$/.exec(JSON.parse(read('package.json')).engines.node)?.[1])
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
  assert.ok(existsSync(join(root, 'deploy', /"(\.\/\S+?):/.exec(compose)?.[1] as string)))
  const [, program = '', launcher = ''] = /^ExecStart=(\S+) --\S+ (\S+) serve$/m.exec(unit) ?? []
  const installed = `${/^WorkingDirectory=(\S+)$/m.exec(unit)?.[1]}/`
  for (const path of [program, launcher]) assert.ok(path.startsWith(installed), path)
  assert.ok(existsSync(join(root, launcher.slice(installed.length))))
})

test('the proxy lists every node, checks /readyz, and is trusted by its address', () => {
  const nodes = [...compose.matchAll(/^ {2}([\w-]+): \*node$/gm)].map(([, name]) => name)
  const servers = [...proxy.matchAll(/^ {2}server (\S+) (\S+):(\d+)$/gm)]
  assert.equal(nodes.length, 3)
  assert.deepEqual(
    servers.map(([, name, host]) => [name, host]),
    nodes.map((name) => [name, name]),
  )
  for (const [, , , port] of servers) assert.equal(port, nodeEnvironment.ADIT_PORT)
  assert.equal(/ipv4_address: (\S+)/.exec(compose)?.[1], nodeEnvironment.ADIT_TRUSTED_PROXIES)
  // Automatic addresses are in the upper half of the subnet.
  const [subnet, range] = [/subnet: (\S+)\.0\/24$/m, /ip_range: (\S+)\.128\/25$/m].map(
    (pattern) => pattern.exec(compose)?.[1],
  )
  assert.equal(range, subnet)
  assert.match(nodeEnvironment.ADIT_TRUSTED_PROXIES ?? '', new RegExp(`^${subnet}\\.\\d\\d$`))
  assert.match(proxy, /http-check send meth GET uri \/readyz/)
  assert.match(proxy, /set-header X-Forwarded-For %\[src\]/)
  // Without it every event of a stream was delayed by 200 ms.
  assert.match(proxy, /^ {2}option http-no-delay$/m)
})

test('if no node is ready, the proxy responds like a node', () => {
  const { status, example } = faults.unavailable
  const [, code, type, body, headers] =
    /^ {2}http-error status (\d+) content-type "(.+?)" string '(.+?)' (hdr .+)$/m.exec(proxy) ?? []
  assert.equal(Number(code), status)
  assert.equal(type, 'application/json; charset=utf-8')
  assert.deepEqual(JSON.parse(body as string), example)
  for (const header of ['Retry-After 1', 'Access-Control-Allow-Origin *'])
    assert.ok(headers?.includes(`hdr ${header}`), header)
})

test('timeouts match: the proxy notices a node before it stops, it drains before it is killed, no stream is cut', () => {
  const source = (path: string, name: string) =>
    Number(new RegExp(`${name} = ([\\d_]+)`).exec(read(path))?.[1]?.replaceAll('_', '')) / 1000
  const drain = source('src/http/server/drain.ts', 'GRACE_PERIOD_MS')
  const comment = source('src/http/api/change-events.ts', 'HEARTBEAT_INTERVAL_MS')
  const idle = source('src/http/server/connection-guard.ts', 'KEEP_ALIVE_MS')
  const delay = Number(nodeEnvironment.ADIT_STOP_DELAY)
  const noticedAfter = seconds(proxy, /inter (\d+)s/) * seconds(proxy, /fall (\d+)/)
  assert.ok(noticedAfter < delay, 'ADIT_STOP_DELAY is shorter than the health checks need')
  assert.ok(seconds(compose, /^ {2}stop_grace_period: (\d+)s/m) >= delay + drain + 5)
  assert.ok(
    seconds(compose, /^ {4}stop_grace_period: (\d+)s\n {4}ports:/m) >
      seconds(proxy, /hard-stop-after (\d+)s/),
  )
  assert.ok(seconds(unit, /^TimeoutStopSec=(\d+)$/m) >= drain + 20 + 5)
  for (const end of ['client', 'server'])
    assert.ok(seconds(proxy, new RegExp(`timeout ${end} (\\d+)s`)) > 3 * comment, end)
  assert.ok(seconds(proxy, /timeout http-keep-alive (\d+)s/) < idle)
})

test('HAProxy accepts its configuration', (t) => {
  if (spawnSync('haproxy', ['-v']).status !== 0) return t.skip('HAProxy is not installed')
  const { status, stderr } = spawnSync('haproxy', ['-c', '-f', join(root, 'deploy/haproxy.cfg')])
  assert.equal(status, 0, String(stderr))
})

test('systemd accepts the unit', (t) => {
  if (spawnSync('systemd-analyze', ['--version']).status !== 0) return t.skip('systemd is not installed')
  // systemd checks that the program exists; it is elsewhere on this machine.
  const file = join(createFolder(t), 'adit.service')
  writeFileSync(file, unit.replaceAll(/^ExecStart=\S+/gm, `ExecStart=${process.execPath}`))
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file])
  assert.deepEqual([status, String(stderr)], [0, ''])
})
