// Runs tests, by default all. --usual, --timed and --long choose by the names of their files: *.test.ts,
// *.timed.test.ts (they fail if something takes too long, and run alone) and *.long.test.ts; paths choose
// files and folders. The files of a folder share a process, so that the program is loaded once for them.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { globalSetup, globalTeardown } from './support/global.ts'

/** More processes than cores, because tests also wait. Long ones keep the cores busy. */
const PROCESSES = { usual: 5, timed: 1, long: 3 }
const PROCESSES_FOLDER = join(import.meta.dirname, 'support/processes')
// Threads of the garbage collector would compete with the other processes.
const ARGS = ['--single-threaded-gc', `--import=${PROCESSES_FOLDER}/without-async-hooks.ts`]
// On SIGUSR2 a process prints its stack and its open handles.
ARGS.push('--report-on-signal', '--report-filename=stdout', '--report-exclude-env')
ARGS.push(join(PROCESSES_FOLDER, 'test-files.ts'))
/** Several times what the slowest folder takes. */
const MAX_MINUTES = 15
const REPORT_MS = 5_000

const flag = { type: 'boolean' } as const
const options = { usual: flag, timed: flag, long: flag }
const { values, positionals } = parseArgs({ options, allowPositionals: true })
const paths = positionals.map((path) => `${resolve(path)}/`)
const files = globSync(join(import.meta.dirname, '**/*.test.ts'))
  .map((path) => ({ path, kind: /\.(timed|long)\.test\.ts$/.exec(path)?.[1] ?? 'usual' }))
  .filter(({ kind }) => Object.keys(values).length === 0 || kind in values)
  .filter(({ path }) => paths.length === 0 || paths.some((start) => `${path}/`.startsWith(start)))
if (files.length === 0) throw new Error(`no test file: ${process.argv.slice(2).join(' ')}`)

// The default of a signal would leave PostgreSQL running. npm sends a second one.
const interrupted = new AbortController()
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => interrupted.abort())
const failures: string[] = []

async function runGroup(group: string[]): Promise<void> {
  const folder = relative('', dirname(group[0] ?? ''))
  const start = performance.now()
  // It leads a process group: a program that outlives its test would keep the output open.
  const child = spawn(process.execPath, [...ARGS, ...group], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  })
  const killGroup = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // All of it has ended.
    }
  }
  interrupted.signal.addEventListener('abort', killGroup)
  let isEndless = false
  const limit = setTimeout(() => {
    isEndless = true
    child.kill('SIGUSR2')
    setTimeout(killGroup, REPORT_MS)
  }, MAX_MINUTES * 60_000)
  child.on('exit', killGroup)
  const [output, [status]] = await Promise.all([text(child.stdout), once(child, 'close')])
  clearTimeout(limit)
  interrupted.signal.removeEventListener('abort', killGroup)
  if (interrupted.signal.aborted) return

  const seconds = Math.round((performance.now() - start) / 1000)
  if (status === 0) return void process.stdout.write(`${folder} (${seconds} s)\n${output}`)
  const problem = isEndless ? `did not end in ${MAX_MINUTES} minutes` : 'failed'
  failures.push(`✖ ${folder} ${problem}\n${output}`)
  process.stdout.write(`✖ ${folder} ${problem}: its output follows at the end\n`)
}

await globalSetup()
for (const [kind, processes] of Object.entries(PROCESSES)) {
  const paths = files.filter((file) => file.kind === kind).map(({ path }) => path)
  // The largest first, so that none of them is left running alone at the end.
  const groups = [...Map.groupBy(paths, dirname).values()].toSorted((a, b) => b.length - a.length).values()
  const runGroups = async () => {
    for (const group of groups) if (!interrupted.signal.aborted) await runGroup(group)
  }
  await Promise.all(Array.from({ length: processes }, runGroups))
}
await globalTeardown()
process.stdout.write(failures.join(''))
if (failures.length > 0 || interrupted.signal.aborted) process.exitCode = 1
