// Runs the suite, or the given folders of it. The files of a folder share a process, so that the program is
// loaded and compiled once for all of them.
import { globSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** More than two cores, because tests also wait; not many more, because some have time limits. */
const CONCURRENCY = 3
const TEST_TIMEOUT_MS = 120_000
/** Their files do not share a process: their tests are few and long, and run the program in other processes. */
const SEPARATE = new Set(['faults', 'hostile', 'package', 'process', 'tunnels'])

const root = fileURLToPath(new URL('.', import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'adit-suite-'))
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }))

/** The files of each process. */
function groupsOf(folder: string): string[][] {
  const files = globSync(`${folder}/*.test.ts`, { cwd: root }).map((file) => join(root, file))
  return SEPARATE.has(folder) ? files.map((file) => [file]) : [files]
}

/** One file that imports the others. */
function combine(files: string[]): string {
  const path = join(scratch, `${basename(dirname(files[0] as string))}.mjs`)
  writeFileSync(path, files.map((file) => `import '${pathToFileURL(file)}'\n`).join(''))
  return path
}

const sizeOf = (files: string[]) => files.reduce((sum, file) => sum + statSync(file).size, 0)

const given = process.argv.slice(2)
const folders = given.length > 0 ? given : globSync('*/', { cwd: root })
// The largest first, so that none of them is left running alone at the end.
const groups = folders.flatMap(groupsOf).toSorted((a, b) => sizeOf(b) - sizeOf(a))

// The default of a signal would leave PostgreSQL running.
const interrupted = new AbortController()
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(name, () => interrupted.abort())

// Not written in the call, because @types/node does not have globalSetupPath yet.
const options = {
  files: groups.flatMap((files) => (files.length > 1 ? combine(files) : files)),
  concurrency: CONCURRENCY,
  timeout: TEST_TIMEOUT_MS,
  signal: interrupted.signal,
  globalSetupPath: join(root, 'support/global.ts'),
}
run(options)
  .on('test:fail', () => {
    process.exitCode = 1
  })
  .compose(spec)
  .pipe(process.stdout)
