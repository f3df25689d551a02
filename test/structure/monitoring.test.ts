// The files in deploy/monitoring/ are checked by Prometheus's own tool, and name only metrics that exist.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promtool, withoutPromtool } from '../support/api/metrics.ts'
import { createFolder } from '../support/databases/create.ts'
import { root } from '../support/processes/process.ts'

const folder = join(root, 'deploy/monitoring')
const read = (name: string) => readFileSync(join(folder, name), 'utf8')
const alerts = read('alerts.yml')
const compose = readFileSync(join(root, 'deploy/compose.yaml'), 'utf8')

interface Panel {
  type: string
  title: string
  targets?: { expr: string }[]
}
const dashboard = JSON.parse(read('dashboard.json')) as { panels: Panel[] }
const queries = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))

test('every alert has a test in which it fires, and promtool passes them', { skip: withoutPromtool }, () => {
  promtool(['check', 'config', join(folder, 'prometheus.yml')])
  promtool(['test', 'rules', join(folder, 'alerts.test.yml')])
  const fires = read('alerts.test.yml').matchAll(/alertname: (\w+)\n +eval_time: \w+\n +exp_alerts:\n/g)
  assert.deepEqual(
    [...fires].map(([, name]) => name).sort(),
    [...alerts.matchAll(/- alert: (\w+)/g)].map(([, name]) => name).sort(),
  )
})

test('promtool accepts every query of the dashboard', { skip: withoutPromtool }, (t) => {
  assert.ok(queries.length > 30)
  const rules = queries.map((query, index) => ({
    record: `query_${index}`,
    expr: query.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*'),
  }))
  const file = join(createFolder(t), 'queries.yml')
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }))
  promtool(['check', 'rules', file])
})

test('alerts and dashboard name metrics that docs/operations/metrics.md lists, and every one of Adit is shown', () => {
  const document = readFileSync(join(root, 'docs/operations/metrics.md'), 'utf8')
  const documented = new Set([...document.matchAll(/^\| `(\w+)` \|/gm)].map(([, name = '']) => name))
  const namesIn = (text: string) =>
    [...text.matchAll(/\b(?:adit|http|nodejs|process)_\w+/g)].map(([name]) =>
      documented.has(name) ? name : name.replace(/_(bucket|count|sum)$/, ''),
    )
  const expressions = [...alerts.matchAll(/ expr: (?:\|\n((?: {10}.*\n)+)|(.*))/g)].map(
    ([, long, short]) => long ?? short ?? '',
  )
  const used = new Set([...queries, ...expressions].flatMap(namesIn))
  for (const name of used) assert.ok(documented.has(name), name)
  const unused = [...documented].filter((name) => name.startsWith('adit_') && !used.has(name))
  assert.deepEqual(unused, ['adit_build_info'])
})

test('Prometheus scrapes every node and the edge of the compose file', () => {
  const targets = [...read('prometheus.yml').matchAll(/"([\w-]+):(\d+)"/g)].map(([, host]) => host)
  assert.deepEqual(
    targets,
    [...compose.matchAll(/^ {2}([\w-]+): \*node$/gm)].map(([, name]) => name),
  )
  const ports = [...read('prometheus.yml').matchAll(/(?::|port: )(\d{4})\b/g)].map(([, port]) => port)
  const listening = [...compose.matchAll(/ADIT_METRICS_PORT: "(\d+)"/g)].map(([, port]) => port)
  assert.equal(listening.length, 2)
  assert.deepEqual([...new Set(ports)], [...new Set(listening)])
})
