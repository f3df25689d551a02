// Runs the tests of `npm test` (*.test.ts), with --long those that take longer (*.long.test.ts), with --timed those
// that fail if something takes too long (*.timed.test.ts), or all in the given files and folders. The files of a
// folder share a process, so that the program is loaded and compiled once for all of them.
import { spawn } from 'node:child_process'
import { globSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { globalSetup, globalTeardown } from './support/global.ts'

/** Long tests keep the cores busy; others also wait. Timed tests measure the program and not how busy the machine is. */
const PROCESSES = { usual: 5, long: 3, timed: 1 }
/** Of the files of one process. Larger folders are split. */
const BYTES_MAX = 120_000
const FLAGS = [
  '--test',
  '--test-isolation=none',
  // Ends what hangs. Machines are sometimes several times slower than usual.
  '--test-timeout=300000',
  '--test-reporter=spec',
  // Threads of the garbage collector would compete with the other processes.
  '--single-threaded-gc',
  `--import=${join(import.meta.dirname, 'support/processes/without-async-hooks.ts')}`,
]

const [first = '', ...rest] = process.argv.slice(2)
const kind = first === '--long' ? 'long' : first === '--timed' ? 'timed' : 'usual'
const paths = (kind === 'usual' && first ? [first, ...rest] : rest).map((path) => resolve(path))
const isKind = (file: string) => (/\.(long|timed)\.test\.ts$/.exec(file)?.[1] ?? 'usual') === kind
const files = globSync('**/*.test.ts', { cwd: import.meta.dirname })
  .map((file) => join(import.meta.dirname, file))
  .filter((file) =>
    paths.length > 0 ? paths.some((path) => `${file}/`.startsWith(`${path}/`)) : isKind(file),
  )
  .map((path) => ({ path, bytes: statSync(path).size }))

const sum = (group: typeof files) => group.reduce((total, { bytes }) => total + bytes, 0)
/** The largest first, so that none of them is left running alone at the end. */
const groups = [...Map.groupBy(files, ({ path }) => dirname(path)).values()]
  .flatMap((folder) =>
    Object.values(Object.groupBy(folder, (_, index) => index % Math.ceil(sum(folder) / BYTES_MAX))),
  )
  .toSorted((a = [], b = []) => sum(b) - sum(a))
  .map((group = []) => group.map(({ path }) => path))

// The default of a signal would leave PostgreSQL running.
const interrupted = new AbortController()
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(name, () => interrupted.abort())
const failures: string[] = []

async function runGroups(): Promise<void> {
  for (let group = groups.shift(); group && !interrupted.signal.aborted; group = groups.shift()) {
    const child = spawn(process.execPath, [...FLAGS, ...group], {
      signal: interrupted.signal,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const ended = new Promise<boolean>((done) =>
      child.on('error', () => done(false)).on('exit', (code) => done(code === 0)),
    )
    const output = await text(child.stdout)
    if (await ended) process.stdout.write(output)
    else failures.push(output)
  }
}

if (files.length === 0) throw new Error(`no test file in ${paths.join(', ')}`)
await globalSetup()
await Promise.all(Array.from({ length: PROCESSES[kind] }, runGroups)).finally(globalTeardown)
for (const output of failures) process.stdout.write(output)
if (failures.length > 0 || interrupted.signal.aborted) process.exitCode = 1
