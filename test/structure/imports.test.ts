// Dependencies between parts point one way. ARCHITECTURE.md has the same table.
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { root } from '../support/process.ts'

/** The parts and packages that each part may import. */
const rules: Record<string, { ours: string[]; packages: string[] }> = {
  credentials: { ours: [], packages: [] },
  contract: { ours: ['credentials'], packages: ['typebox'] },
  store: { ours: ['credentials', 'shared-slots', 'time'], packages: ['kysely', 'pg'] },
  domain: {
    ours: [
      'contract',
      'csv',
      'credentials',
      'directory',
      'lazily',
      'lru-cache',
      'metrics',
      'net',
      'shared-slots',
      'store',
      'time',
    ],
    packages: ['typebox', '@zxcvbn-ts/language-common'],
  },
  directory: { ours: ['credentials', 'lru-cache', 'store', 'time'], packages: [] },
  auth: { ours: ['contract', 'credentials', 'domain', 'store'], packages: ['better-auth', 'jose', 'kysely'] },
  http: {
    ours: [
      'auth',
      'contract',
      'domain',
      'directory',
      'lazily',
      'log',
      'lru-cache',
      'mail',
      'mcp',
      'metrics',
      'net',
      'shared-slots',
      'time',
    ],
    packages: ['fastify', 'fast-json-stringify', '@fastify/static', 'pino', 'typebox'],
  },
  client: { ours: ['contract', 'net'], packages: ['typebox'] },
  mcp: { ours: ['client', 'contract', 'credentials'], packages: ['@modelcontextprotocol/server', 'typebox'] },
  'edge-sdk': { ours: ['contract', 'credentials', 'net', 'time'], packages: ['typebox'] },
  metrics: { ours: ['net'], packages: ['prom-client'] },
  net: { ours: [], packages: [] },
  yamux: { ours: [], packages: [] },
  tunnels: { ours: ['credentials', 'edge-sdk', 'metrics', 'net', 'shared-slots', 'yamux'], packages: [] },
  webhooks: { ours: ['domain', 'net', 'shared-slots'], packages: ['standardwebhooks'] },
  'cli/admin': {
    ours: [
      'cli',
      'contract',
      'credentials',
      'services',
      'config',
      'directory',
      'doctor',
      'log',
      'domain',
      'operator',
    ],
    packages: [],
  },
  doctor: {
    ours: [
      'auth',
      'config',
      'directory',
      'lazily',
      'mail',
      'net',
      'services',
      'session-secret',
      'startup-error',
      'store',
    ],
    packages: [],
  },
  cli: {
    ours: [
      'cli/admin',
      'contract',
      'credentials',
      'app',
      'session-secret',
      'services',
      'config',
      'log',
      'domain',
      'edge-sdk',
      'client',
      'mcp',
      'metrics',
      'net',
      'tunnels',
      'workers',
    ],
    packages: ['pino'],
  },
  workers: { ours: ['metrics', 'store'], packages: ['pino'] },
  config: { ours: ['contract', 'net', 'store'], packages: [] },
  csv: { ours: [], packages: [] },
  operator: { ours: [], packages: [] },
  'startup-error': { ours: [], packages: [] },
  lazily: { ours: [], packages: [] },
  'lru-cache': { ours: [], packages: [] },
  'shared-slots': { ours: [], packages: [] },
  time: { ours: [], packages: [] },
  log: { ours: [], packages: ['pino'] },
  services: {
    ours: ['operator', 'startup-error', 'config', 'directory', 'domain', 'metrics', 'store'],
    packages: ['pino'],
  },
  mail: { ours: [], packages: ['nodemailer'] },
  'session-secret': { ours: ['startup-error', 'config'], packages: [] },
  app: {
    ours: [
      'workers',
      'auth',
      'startup-error',
      'config',
      'directory',
      'domain',
      'http',
      'lazily',
      'mail',
      'metrics',
      'net',
      'session-secret',
      'webhooks',
    ],
    packages: ['fastify', 'pino'],
  },
  main: { ours: ['startup-error', 'cli', 'config', 'domain'], packages: [] },
}

const partOf = (file: string) =>
  file.startsWith('cli/admin/') ? 'cli/admin' : (file.split('/')[0] as string).replace(/\.ts$/, '')

function* imports() {
  const source = join(root, 'src')
  for (const file of globSync('**/*.ts', { cwd: source })) {
    const text = readFileSync(join(source, file), 'utf8')
    for (const [, target = ''] of text.matchAll(/\b(?:from |import |import\(\s*)'([^']+)'/g)) {
      const ours = target.startsWith('.')
      yield { file, target, ours, to: ours ? relative(source, join(source, dirname(file), target)) : target }
    }
  }
}

test('every import follows the dependency rules', () => {
  let seen = 0
  for (const { file, to, ours } of imports()) {
    seen += 1
    const part = partOf(file)
    const rule = rules[part]
    assert.ok(rule, `${file} belongs to no known part`)
    if (ours) assert.ok([part, ...rule.ours].includes(partOf(to)), `${file} must not import ${to}`)
    else if (!isBuiltin(to)) {
      const name = to
        .split('/')
        .slice(0, to.startsWith('@') ? 2 : 1)
        .join('/')
      assert.ok(rule.packages.includes(name), `${file} must not import the package ${name}`)
    }
  }
  assert.ok(seen > 100, 'found too few imports')
})

test('only the configuration reads the environment, and only http/, metrics/, tunnels/ and webhooks/ import node:http', () => {
  const source = join(root, 'src')
  for (const file of globSync('**/*.ts', { cwd: source })) {
    const text = readFileSync(join(source, file), 'utf8')
    if (file.split('/')[0]?.replace(/\.ts$/, '') !== 'config') assert.doesNotMatch(text, /process\.env/, file)
    if (!/^(http|metrics|tunnels|webhooks)\//.test(file)) assert.doesNotMatch(text, /node:http/, file)
  }
})

test('the server imports only types of node:http: the import of a value loads the client of fetch as well', () => {
  const source = join(root, 'src')
  for (const file of globSync('{http,metrics,webhooks}/**/*.ts', { cwd: source })) {
    const text = readFileSync(join(source, file), 'utf8')
    assert.doesNotMatch(text, /^import (?!type )[^']*'node:http'/m, file)
  }
})

test('the client and the edge SDK import no package at run time, and of other parts only net, time, the format of secrets and types', () => {
  const source = join(root, 'src')
  for (const file of globSync('{client,edge-sdk}/*.ts', { cwd: source })) {
    const text = readFileSync(join(source, file), 'utf8')
    for (const [statement, target = ''] of text.matchAll(/^(?:import|export)\b[^']*from '([^']+)'/gm))
      if (!/^\.\/|^\.\.\/(net\/|time\.ts|credentials\/secret\.ts)/.test(target) && !isBuiltin(target))
        assert.match(statement, /^import type /, file)
  }
})

test('imports have no cycles', () => {
  const targets = new Map<string, string[]>()
  for (const { file, to, ours } of imports()) if (ours) targets.set(file, [...(targets.get(file) ?? []), to])
  const visited = new Set<string>()
  const walk = (file: string, path: string[]): void => {
    assert.ok(!path.includes(file), `cycle: ${[...path, file].join(' → ')}`)
    if (visited.has(file)) return
    for (const target of targets.get(file) ?? []) walk(target, [...path, file])
    visited.add(file)
  }
  for (const file of targets.keys()) walk(file, [])
})

test('the table of ARCHITECTURE.md lists these rules, and its diagram has no other arrows', () => {
  const text = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
  const isFolder = (part: string) => existsSync(join(root, 'src', part))
  const folders = Object.entries(rules).filter(([part]) => isFolder(part))
  const namesIn = (cell: string) => [...cell.matchAll(/`([\w/-]+)`/g)].map(([, name = '']) => name).sort()
  const rows = [...text.matchAll(/^\| (`.+?`) \| (.*?) ?\|/gm)].flatMap(([, parts = '', imported = '']) =>
    namesIn(parts).map((part) => [part, namesIn(imported)]),
  )
  assert.deepEqual(
    Object.fromEntries(rows),
    Object.fromEntries(folders.map(([part, { ours }]) => [part, ours.filter(isFolder).sort()])),
  )
  const [, diagram = ''] = /```mermaid\n(.*?)```/s.exec(text) ?? []
  const arrows = [...diagram.matchAll(/^ +([\w-]+)(?:\[.*?\])? --> ([\w-]+)/gm)]
  assert.ok(arrows.length > 20)
  for (const [arrow, from = '', to = ''] of arrows) assert.ok(rules[from]?.ours.includes(to), arrow)
})
