// Runs the suite, or the given folders of it. The files of a folder share one process or a few, so that the
// program is loaded and compiled once for all of them.
import { globSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** More than two cores, because tests also wait; not many more, because some have time limits. */
const CONCURRENCY = 4
const TEST_TIMEOUT_MS = 120_000
/**
 * Folders whose tests mostly wait for other processes, the slowest first, with the number of processes that their
 * files are distributed to.
 */
const WAITING: Record<string, number> = {
  pages: 2,
  faults: 2,
  tunnels: 4,
  process: 5,
  hostile: 2,
  package: 2,
}

const root = fileURLToPath(new URL('.', import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'adit-suite-'))
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }))

interface Group {
  readonly name: string
  readonly files: string[]
  bytes: number
}

/** The files of each process, distributed by size. */
function groupsOf(folder: string): Group[] {
  const files = globSync(`${folder}/*.test.ts`, { cwd: root })
    .map((file) => ({ file: join(root, file), bytes: statSync(join(root, file)).size }))
    .toSorted((a, b) => b.bytes - a.bytes)
  const count = Math.min(WAITING[folder] ?? 1, files.length)
  const groups: Group[] = Array.from({ length: count }, (_, index) => ({
    name: `${folder}-${index + 1}`,
    files: [],
    bytes: 0,
  }))
  for (const { file, bytes } of files) {
    const smallest = groups.reduce((a, b) => (b.bytes < a.bytes ? b : a))
    smallest.files.push(file)
    smallest.bytes += bytes
  }
  return groups
}

/** One file that imports the others. */
function combine({ name, files }: Group): string {
  const path = join(scratch, `${name}.mjs`)
  writeFileSync(path, files.map((file) => `import '${pathToFileURL(file)}'\n`).join(''))
  return path
}

const given = process.argv.slice(2)
const folders = given.length > 0 ? given : globSync('*/', { cwd: root })
// The longest first, so that none of them is left running alone at the end. Those that wait alternate with those that
// compute, so that there is always work for every core.
const waiting = Object.keys(WAITING)
  .filter((folder) => folders.includes(folder))
  .flatMap(groupsOf)
const computing = folders
  .filter((folder) => !(folder in WAITING))
  .flatMap(groupsOf)
  .toSorted((a, b) => b.bytes - a.bytes)
const groups = Array.from({ length: Math.max(waiting.length, computing.length) })
  .flatMap((_, index) => [waiting[index], computing[index]])
  .filter((group) => group !== undefined)

// The default of a signal would leave PostgreSQL running.
const interrupted = new AbortController()
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(name, () => interrupted.abort())

// Not written in the call, because @types/node does not have globalSetupPath yet.
const options = {
  files: groups.map(combine),
  concurrency: CONCURRENCY,
  timeout: TEST_TIMEOUT_MS,
  signal: interrupted.signal,
  globalSetupPath: join(root, 'support/global.ts'),
  execArgv: [`--import=${join(root, 'support/without-async-hooks.ts')}`],
}
run(options)
  .on('test:fail', () => {
    process.exitCode = 1
  })
  .compose(spec)
  .pipe(process.stdout)
