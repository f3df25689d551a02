// Scrapes metrics, and runs Prometheus's own tool on them.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'

/** Values by series, as they are written: `name{label="value"}`. */
export type Scraped = Map<string, number> & { text: string }

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

/** The type of each metric by its name. */
export const typesIn = (text: string): Map<string, string> =>
  new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type]))

export const hasPromtool = spawnSync('promtool', ['--version']).status === 0
/** For the option `skip` of a test. */
export const withoutPromtool = !hasPromtool && 'needs promtool (apt-get install prometheus)'

export function promtool(args: string[], input = ''): string {
  const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' })
  assert.equal(status, 0, `promtool ${args.join(' ')}\n${stdout}${stderr}`)
  return stdout + stderr
}
