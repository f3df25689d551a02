// Scrapes metrics, and runs Prometheus's own tool on them.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../processes/process.ts'

/** Values by series, as they are written: `name{label="value"}`. */
type Scraped = Map<string, number> & { text: string }

export async function scrape(url: string | undefined): Promise<Scraped> {
  assert.ok(url, 'no metrics listener')
  const response = await fetch(url)
  assert.equal(response.status, 200)
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
  const text = await response.text()
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const values = lines.map((line) => {
    const valueAt = line.lastIndexOf(' ')
    return [line.slice(0, valueAt), Number(line.slice(valueAt + 1))] as const
  })
  return Object.assign(new Map(values), { text })
}

/**
 * The metrics of a scrape must be those of these sections of docs/operations/metrics.md, with their labels.
 */
export function assertDocumented({ text }: Scraped, sections: string[]): void {
  const document = readFileSync(join(root, 'docs/operations/metrics.md'), 'utf8')
  const documented = document
    .split('\n## ')
    .filter((section) => sections.includes(section.split('\n', 1)[0] as string))
    .flatMap((section) => [...section.matchAll(/^\| `(\w+)` \| (\w+) \| (.*?) ?\|/gm)])
    .map(([, name = '', type = '', labels = '']) => ({
      name,
      type,
      labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label = '']) => label).sort(),
    }))
  const served = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => ({
    name,
    type,
  }))
  assert.deepEqual(
    documented.map(({ name, type }) => `${name} ${type}`).sort(),
    served.map(({ name, type }) => `${name} ${type}`).sort(),
  )
  for (const { name, labels } of documented) {
    const samples = [...text.matchAll(new RegExp(`^${name}(?:_bucket|_sum|_count)?(?:\\{(.*)\\})? `, 'gm'))]
    const used = new Set(
      samples.flatMap(([, list = '']) => [...list.matchAll(/(\w+)="/g)].map(([, label]) => label)),
    )
    used.delete('le')
    if (samples.length > 0) assert.deepEqual([...used].sort(), labels, name)
  }
}

const hasPromtool = spawnSync('promtool', ['--version']).status === 0
/** For the option `skip` of a test. */
export const withoutPromtool = !hasPromtool && 'needs promtool (apt-get install prometheus)'

export function promtool(args: string[], input = ''): string {
  const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' })
  assert.equal(status, 0, `promtool ${args.join(' ')}\n${stdout}${stderr}`)
  return stdout + stderr
}
