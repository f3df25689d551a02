// Dependencies between parts, and between the subjects inside a part, point one way. ARCHITECTURE.md has the
// same table.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { root } from '../support/processes/process.ts'

/** The parts and packages that each part may import. */
const rules: Record<string, { parts: string[]; packages?: string[] }> = {
  lib: { parts: [], packages: ['pino', 'prom-client'] },
  yamux: { parts: [] },
  workers: { parts: ['lib'], packages: ['pino'] },
  contract: { parts: ['lib'], packages: ['typebox'] },
  client: { parts: ['contract', 'lib'], packages: ['typebox'] },
  mcp: { parts: ['client', 'contract'], packages: ['@modelcontextprotocol/server', 'typebox'] },
  'edge-sdk': { parts: ['contract', 'lib'], packages: ['typebox'] },
  'tunnel-protocol': { parts: ['lib', 'yamux'] },
  'tunnel-client': { parts: ['lib', 'tunnel-protocol', 'yamux'] },
  inspector: { parts: ['lib', 'tunnel-client', 'tunnel-protocol'] },
  tunnel: { parts: ['client', 'lib', 'tunnel-client', 'tunnel-protocol'] },
  edge: { parts: ['edge-sdk', 'lib', 'tunnel-protocol', 'yamux'] },
  'server/store': { parts: ['lib'], packages: ['kysely', 'pg'] },
  'server/verification': { parts: ['lib', 'server/store'] },
  'server/domain': {
    parts: ['contract', 'lib', 'server/config', 'server/verification', 'server/store'],
    packages: ['typebox', '@zxcvbn-ts/language-common'],
  },
  'server/auth': {
    parts: ['contract', 'lib', 'server/domain', 'server/store'],
    packages: ['openid-client'],
  },
  'server/mail': { parts: [], packages: ['nodemailer'] },
  'server/http': {
    parts: ['contract', 'lib', 'mcp', 'server/auth', 'server/verification', 'server/domain', 'server/mail'],
    packages: ['fastify', 'fast-json-stringify', 'pino', 'typebox'],
  },
  'server/outbound': { parts: ['lib'] },
  'server/webhooks': { parts: ['lib', 'server/domain', 'server/outbound'], packages: ['standardwebhooks'] },
  'server/config': { parts: ['contract', 'lib', 'server/store'] },
  'server/session-secret': { parts: ['lib', 'server/config'] },
  'server/operator': { parts: [] },
  'server/services': {
    parts: [
      'lib',
      'server/config',
      'server/verification',
      'server/domain',
      'server/operator',
      'server/store',
    ],
    packages: ['pino'],
  },
  'server/doctor': {
    parts: [
      'lib',
      'server/auth',
      'server/config',
      'server/verification',
      'server/mail',
      'server/services',
      'server/session-secret',
      'server/store',
    ],
  },
  'server/app': {
    parts: [
      'lib',
      'server/auth',
      'server/config',
      'server/verification',
      'server/domain',
      'server/http',
      'server/mail',
      'server/outbound',
      'server/session-secret',
      'server/webhooks',
      'workers',
    ],
    packages: ['fastify', 'pino'],
  },
  'cli/admin': {
    parts: [
      'cli',
      'contract',
      'lib',
      'server/config',
      'server/verification',
      'server/doctor',
      'server/domain',
      'server/operator',
      'server/services',
    ],
  },
  cli: {
    parts: [
      'cli/admin',
      'client',
      'contract',
      'edge',
      'edge-sdk',
      'inspector',
      'lib',
      'mcp',
      'server/app',
      'server/config',
      'server/domain',
      'server/services',
      'server/session-secret',
      'tunnel-client',
      'tunnel-protocol',
      'workers',
    ],
    packages: ['pino'],
  },
  main: { parts: ['cli'] },
  'cli-main': { parts: ['cli', 'lib'] },
}

/** Subjects, each of which may import those before it. Files beside the folders of `domain` come first. */
const subjects: Record<string, string[]> = {
  'server/domain': [
    'audit',
    'events',
    'notices',
    'webhooks',
    'quotas',
    'workspaces',
    'keys',
    'accounts',
    'devices',
    'agents',
    'usage',
    'cluster',
    'tunnels',
    'maintenance',
    'setup',
  ],
  'server/store': [
    'engine',
    'schema',
    'change-log',
    'workspaces',
    'keys',
    'accounts',
    'device-authorizations',
    'audit',
    'usage',
    'tunnels',
    'cluster',
    'quotas',
    'notices',
    'webhooks',
    'maintenance',
  ],
}

/** `server` and the commands of the operator consist of several parts. */
const findPart = (file: string) =>
  /^(server|cli\/admin(?=\/))(\/[\w-]+)?|^[\w-]+/
    .exec(file)?.[0]
    .replace(/^cli\/admin.*/, 'cli/admin') as string

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
    const part = findPart(file)
    const rule = rules[part]
    assert.ok(rule, `${file} belongs to no known part: add it to the rules and to ARCHITECTURE.md`)
    if (ours) assert.ok([part, ...rule.parts].includes(findPart(to)), `${file} must not import ${to}`)
    else if (!isBuiltin(to)) {
      const name = to
        .split('/')
        .slice(0, to.startsWith('@') ? 2 : 1)
        .join('/')
      assert.ok(rule.packages?.includes(name), `${file} must not import the package ${name}`)
    }
  }
  assert.ok(seen > 100, 'found too few imports')
})

test('subjects import only those before them', () => {
  for (const [part, order] of Object.entries(subjects)) {
    const rank = (file: string): number => {
      const [name = '', ...rest] = file.slice(part.length + 1).split('/')
      const index = order.indexOf(name.replace(/\.ts$/, ''))
      assert.ok(index !== -1 || rest.length === 0, `${file}: add ${name} to the subjects of ${part}`)
      return index
    }
    const inside = [...imports()].filter(
      ({ file, to }) => file.startsWith(`${part}/`) && to.startsWith(`${part}/`),
    )
    for (const { file, to } of inside)
      assert.ok(rank(file) >= rank(to), `${file} must not import ${to}, a later subject of ${part}`)
  }
})

test('no folder has more than 16 files, and no file the name of its folder', () => {
  const files = globSync('{src,test,bench,scripts,web/src}/**/*.{ts,tsx}', { cwd: root })
  const byFolder = Map.groupBy(files, dirname)
  for (const [folder, { length }] of byFolder)
    assert.ok(length <= 16, `${folder} has ${length} files: group them by subject`)
  for (const file of files)
    assert.doesNotMatch(file, /(?:^|\/)([\w-]+)\/\1(\.\w+)*\.tsx?$/, `${file} has the name of its folder`)
})

test('only the configuration reads the environment, and only HTTP servers and clients import node:http', () => {
  const source = join(root, 'src')
  for (const file of globSync('**/*.ts', { cwd: source })) {
    const text = readFileSync(join(source, file), 'utf8')
    if (!file.startsWith('server/config/')) assert.doesNotMatch(text, /process\.env/, file)
    if (
      !/^(server\/(http|outbound)|lib\/(metrics|http|net\/proxy)|edge|inspector|tunnel-client|tunnel-protocol)\//.test(
        file,
      )
    )
      assert.doesNotMatch(text, /node:http/, file)
  }
})

test('the server imports only types of node:http: the import of a value loads the client of fetch as well', () => {
  const source = join(root, 'src')
  const files = globSync('{server/http,lib/{metrics,http},server/outbound}/**/*.ts', { cwd: source })
  assert.ok(files.length > 50)
  for (const file of files) {
    const text = readFileSync(join(source, file), 'utf8')
    assert.doesNotMatch(text, /^import (?!type )[^']*'node:http'/m, file)
  }
})

test('the client and the edge SDK import no package at run time, and of other parts only lib and types', () => {
  const source = join(root, 'src')
  const files = globSync('{client,edge-sdk}/**/*.ts', { cwd: source })
  assert.ok(files.length > 30)
  for (const file of files) {
    const text = readFileSync(join(source, file), 'utf8')
    for (const [statement, target = ''] of text.matchAll(/^(?:import|export)\b[^']*from '([^']+)'/gm)) {
      const part = target.startsWith('.')
        ? findPart(relative(source, join(source, dirname(file), target)))
        : ''
      const isAllowed = isBuiltin(target) || [findPart(file), 'lib'].includes(part)
      if (!isAllowed) assert.match(statement, /^import type /, file)
    }
  }
})

test('of the contract, the dashboard imports types and limits: its bundle would have all schemas', () => {
  const files = globSync('web/src/**/*.{ts,tsx}', { cwd: root })
  assert.ok(files.length > 50)
  for (const file of files)
    for (const [statement] of readFileSync(join(root, file), 'utf8').matchAll(/^import .*\/contract\/.*$/gm))
      assert.match(statement, /^import type |\/contract\/limits\.ts'$/, file)
})

test('the dashboard does not import the inspector, whose page imports nothing of it that needs Node', () => {
  const files = globSync('web/src/**/*.{ts,tsx}', { cwd: root })
  let seen = 0
  for (const file of files) {
    const imported = readFileSync(join(root, file), 'utf8').matchAll(/ from '([^']*\binspector\/[^']+)'/g)
    for (const [, target = ''] of imported) {
      seen += 1
      assert.match(file, /^web\/src\/inspector\//)
      assert.match(target, /src\/inspector\/(api|text\/(curl|fetch|request)|display\/pretty-json)\.ts$/, file)
    }
  }
  assert.ok(seen > 10)
  for (const name of ['api.ts', 'text/curl.ts', 'text/fetch.ts', 'text/request.ts', 'display/pretty-json.ts'])
    assert.doesNotMatch(readFileSync(join(root, 'src/inspector', name), 'utf8'), /'node:|\bBuffer\b/, name)
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

test('ARCHITECTURE.md has these rules in its tables, and its diagrams have no other arrows', () => {
  const text = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
  const namesIn = (cell: string) => [...cell.matchAll(/`([\w/-]+)`/g)].map(([, name = '']) => name).sort()
  const rows = [...text.matchAll(/^\| (`.+?`) \| (.*?) ?\|/gm)].flatMap(([, parts = '', imported = '']) =>
    namesIn(parts).map((part) => [part, namesIn(imported)]),
  )
  const expected = Object.entries(rules).map(([part, { parts }]) => [part, parts.toSorted()])
  assert.deepEqual(Object.fromEntries(rows), Object.fromEntries(expected))
  for (const [part, order] of Object.entries(subjects))
    assert.ok(text.replace(/\s+/g, ' ').includes(order.join(', ')), `the order of subjects in ${part}`)
  const arrows = [...text.matchAll(/^ +([\w/-]+)(?:\[.*?\])? --> ([\w/-]+)/gm)]
  assert.ok(arrows.length > 20)
  const known = Object.entries(rules).flatMap(([part, { parts }]) => parts.map((other) => `${part} ${other}`))
  /** In the diagram of programs, `server` stands for its parts. */
  const programs = known.map((arrow) =>
    arrow.replace(/server\/[\w-]+/g, 'server').replace('cli/admin', 'cli'),
  )
  for (const [arrow, from, to] of arrows) assert.ok([...known, ...programs].includes(`${from} ${to}`), arrow)
})
