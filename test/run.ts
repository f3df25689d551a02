// Runs the suite, its long part (`--long`), or the given folders. The files of a folder share one process or a few, so that the
// program is loaded and compiled once for all of them.
import { globSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { globalSetup, globalTeardown } from './support/global.ts'

/**
 * More than two cores, because tests also wait; not many more, because programs have time limits. Long tests keep the
 * cores busy by themselves.
 */
const CONCURRENCY = { usual: 5, long: 3 }
/** Ends what hangs. Machines are sometimes several times slower than usual. */
const TEST_TIMEOUT_MS = 300_000
/**
 * Titles of the tests that fail if something takes longer than that, none of them a subtest. They run one at a time
 * before all others, so that they measure the program and not how busy the machine is.
 */
const TIMED = /\b(within a second|(within|at most) 2 s|(within|by (less|more) than) \d+ ms)\b/
/**
 * Folders whose tests mostly wait for other processes, the slowest first, with the number of processes that their
 * files are distributed to.
 */
const WAITING: Record<string, number> = {
  faults: 2,
  hostile: 2,
  tunnels: 4,
  'edge-sdk': 2,
  process: 5,
  pages: 2,
  package: 2,
}

/** What `--long` runs. Without it and without a folder, all other files run. */
const LONG: readonly string[] = [
  'pages/accessibility.test.ts',
  'pages/account.test.ts',
  'pages/audit.test.ts',
  'pages/device.test.ts',
  'pages/docs.test.ts',
  'pages/get-started.test.ts',
  'pages/keys.test.ts',
  'pages/members.test.ts',
  'pages/performance.test.ts',
  'pages/quotas.test.ts',
  'pages/settings.test.ts',
  'pages/sign-in.test.ts',
  'pages/tunnel-access.test.ts',
  'pages/tunnel-names.test.ts',
  'pages/tunnels-live.test.ts',
  'pages/tunnels.test.ts',
  'pages/usage.test.ts',
  'pages/webhooks.test.ts',
  'process/alert-kill.test.ts',
  'process/audit-export.test.ts',
  'process/conflicts.test.ts',
  'process/connection-limits.test.ts',
  'process/connections.test.ts',
  'process/early-responses.test.ts',
  'process/failover.test.ts',
  'process/new-connections.test.ts',
  'process/outage.test.ts',
  'process/report-kill.test.ts',
  'process/rolling-restart.test.ts',
  'process/rolling-update.test.ts',
  'process/sign-in-load.test.ts',
  'process/start.test.ts',
  'process/stop.test.ts',
  'process/storage.test.ts',
  'process/workers.test.ts',
  'tunnels/caddy.test.ts',
  'tunnels/demo.test.ts',
  'tunnels/killed.test.ts',
  'tunnels/limits.test.ts',
  'tunnels/local-server.test.ts',
  'tunnels/new-connections.test.ts',
  'tunnels/open-tunnels.test.ts',
  'tunnels/slow-readers.test.ts',
  'tunnels/tls-ask.test.ts',
  'hostile/new-connections.test.ts',
  'faults/broken-lease.test.ts',
  'faults/webhooks.test.ts',
  'api/long-lists.test.ts',
  'bench/bench.test.ts',
  'cli/backup.test.ts',
  'cli/edge-and-tunnel.test.ts',
  'cli/tunnel-access.test.ts',
  'dashboard/invitation-limits.test.ts',
  'dashboard/oidc.test.ts',
  'dashboard/password-queue.test.ts',
  'dashboard/sso.test.ts',
  'edge/hostile-reports.test.ts',
  'mcp/batches.test.ts',
  'mcp/revisions.test.ts',
  'mcp/stdio.test.ts',
  'package/packages.test.ts',
]

const root = fileURLToPath(new URL('.', import.meta.url))
const given = process.argv.slice(2).filter((argument) => argument !== '--long')
const isLong = process.argv.includes('--long')
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
    .filter((file) => given.length > 0 || LONG.includes(file) === isLong)
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

/**
 * One file that imports the others. No test begins before all of them are loaded: otherwise the tests of some could
 * end, and with them the run, while others still start what their tests need.
 */
function combine({ name, files }: Omit<Group, 'bytes'>): string {
  const path = join(scratch, `${name}.mjs`)
  const imports = files.map((file) => `import('${pathToFileURL(file)}')`)
  writeFileSync(
    path,
    `import { before } from 'node:test'
const loaded = Promise.all([${imports.join(', ')}])
before(() => loaded)
await loaded
`,
  )
  return path
}

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

const options = {
  timeout: TEST_TIMEOUT_MS,
  signal: interrupted.signal,
  // Threads of the garbage collector would compete with the other processes.
  execArgv: ['--single-threaded-gc', `--import=${join(root, 'support/without-async-hooks.ts')}`],
}
const timed = groups.flatMap(({ files }) => files).filter((file) => TIMED.test(readFileSync(file, 'utf8')))

async function* runAll() {
  if (timed.length > 0) {
    const files = [combine({ name: 'timed', files: timed })]
    yield* run({ ...options, concurrency: 1, testNamePatterns: [TIMED], files })
  }
  if (interrupted.signal.aborted) return
  yield* run({
    ...options,
    concurrency: isLong ? CONCURRENCY.long : CONCURRENCY.usual,
    testSkipPatterns: [TIMED],
    files: groups.map(combine),
  })
}

/** Both runs use the same databases. */
async function* withDatabases(events: ReturnType<typeof runAll>) {
  await globalSetup()
  try {
    yield* events
  } finally {
    await globalTeardown()
  }
}

async function* withExitCode(events: ReturnType<typeof runAll>) {
  for await (const event of events) {
    if (event.type === 'test:fail') process.exitCode = 1
    yield event
  }
}

Readable.from(withExitCode(withDatabases(runAll())))
  .compose(spec)
  .pipe(process.stdout)
