// `npm run demo`: the whole product in one command. A control plane, an edge, a sample web server and a tunnel to it, each as
// people run it, and some traffic; all of it in a folder that is removed at the end.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { type AddressInfo, createServer as createNetServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { awaitShutdown } from '../src/cli/shutdown.ts'

const HELP = `npm run demo [-- --seconds <number>]

Runs a control plane, an edge, a sample web server and a tunnel to it, and sends some traffic through the tunnel, until Ctrl-C or
for so many seconds. What it makes is in a folder of its own, which is removed at the end.
`
const NAME = 'my-app'
const VISIT_EVERY_MS = 250
const LARGEST_BYTES = 200_000
const adit = fileURLToPath(new URL('../bin/adit.js', import.meta.url))

const seconds = readSeconds()

function readSeconds(): number {
  try {
    const { values } = parseArgs({ options: { seconds: { type: 'string' }, help: { type: 'boolean' } } })
    if (values.help) {
      process.stdout.write(HELP)
      process.exit(0)
    }
    const seconds = Number(values.seconds ?? Number.POSITIVE_INFINITY)
    if (seconds > 0) return seconds
    throw new Error('--seconds needs a number above 0.')
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${HELP}`)
    process.exit(2)
  }
}

const folder = mkdtempSync(join(tmpdir(), 'adit-demo-'))
const ending = new AbortController()
const children: ChildProcess[] = []
awaitShutdown(0).asked.then(() => ending.abort())
process.on('SIGHUP', () => ending.abort())

/** Only its own settings: those of whoever tries it are for something else. */
const environment = (more: Record<string, string>) => ({
  PATH: process.env.PATH ?? '',
  HOME: folder,
  ADIT_LOG_LEVEL: 'warn',
  // As if npm had started each: they end when this process is gone, however that came.
  npm_lifecycle_event: 'demo',
  ADIT_DATABASE_URL: `sqlite:${join(folder, 'adit.db')}`,
  ...more,
})

/** A command that runs on; what it first says, as JSON. */
async function start<T>(
  words: string[],
  more: Record<string, string>,
  stderr: 'inherit' | 'ignore' = 'inherit',
): Promise<{ child: ChildProcess; said: T }> {
  // A group of its own: Ctrl-C reaches this process alone, which ends the others in order.
  const child = spawn(process.execPath, [adit, ...words, '--json'], {
    env: environment(more),
    stdio: ['ignore', 'pipe', stderr],
    detached: true,
  })
  children.push(child)
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout?.once('data', (chunk) => resolve(String(chunk).split('\n')[0] as string))
    child.once('exit', () => reject(new Error(`"adit ${words.join(' ')}" ended.`)))
  })
  return { child, said: JSON.parse(line) as T }
}

/** The usual port, or any where somebody has that one. */
const portLike = (usual: number) =>
  new Promise<string>((resolve) => {
    const probe = createNetServer()
    probe.once('error', () => resolve('0'))
    probe.listen(usual, '127.0.0.1', () => probe.close(() => resolve(String(usual))))
  })

/** A page, and as many bytes as one likes. */
async function startSample(): Promise<number> {
  const server = createServer((visit, answer) => {
    const [, bytes] = /^\/bytes\/(\d{1,7})$/.exec(visit.url ?? '') ?? []
    const said = bytes
      ? Buffer.alloc(Number(bytes), '.')
      : 'Hello from the sample web server, through a tunnel.\n'
    visit.resume().once('end', () => answer.end(said))
  })
  server.listen(0, 'localhost')
  await once(server, 'listening')
  server.unref()
  return (server.address() as AddressInfo).port
}

interface Visit {
  status: number
  bytes: number
}

/** Like a visitor's, except that it needs nobody to tell where names under localhost are. */
const visit = (edge: URL, host: string, path: string, body: Buffer) =>
  new Promise<Visit>((resolve, reject) => {
    const asked = request(
      { host: edge.hostname, port: edge.port, path, method: 'POST', headers: { host }, agent: false },
      (answer) => {
        let bytes = 0
        answer.on('data', (chunk) => {
          bytes += chunk.length
        })
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, bytes: bytes + body.length }))
        answer.on('error', reject)
      },
    )
    asked.on('error', reject)
    asked.end(body)
  })

async function demonstrate(): Promise<void> {
  const { said: plane } = await start<{ url: string; token: string; setupLink: string }>(['serve'], {
    ADIT_PORT: await portLike(8080),
  })
  const words = [adit, 'admin', 'edge', 'create', 'demo-edge']
  const stdio: ['ignore', 'pipe', 'ignore'] = ['ignore', 'pipe', 'ignore']
  const credential = execFileSync(process.execPath, words, {
    env: environment({}),
    encoding: 'utf8',
    stdio,
  }).trim()
  const { said: edge } = await start<{ url: string }>(['edge'], {
    ADIT_URL: plane.url,
    ADIT_EDGE_KEY: credential,
    ADIT_EDGE_PORT: await portLike(8081),
    ADIT_EDGE_FOLDER: join(folder, 'edge'),
  })
  const access = { ADIT_URL: plane.url, ADIT_API_KEY: plane.token, ADIT_EDGE_URL: edge.url }
  const { child: tunnel, said: open } = await start<{ url: string; host: string }>(
    ['tunnel', String(await startSample()), '--name', NAME],
    access,
    // What it would say at its end is said below.
    'ignore',
  )
  tunnel.stdout?.resume()
  process.stdout.write(`
A control plane, an edge, a sample web server and a tunnel to it are running.

  Tunnel      ${open.url}
  Try it      curl ${open.url}/
  Dashboard   ${plane.setupLink}
              Become the first owner with that link, and look at Usage: it moves.
              Revoke the key there, and the tunnel closes.

To try commands of your own beside it, e.g. "adit usage", or "adit tunnel 3000" with a server of yours (the README says how
to run adit in a clone):

  export ${Object.entries(access)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')}

Traffic goes through the tunnel now. ${Number.isFinite(seconds) ? `It ends after ${seconds} s.` : 'Ctrl-C ends all of it.'}

`)
  tunnel.once('exit', (code) => {
    if (code === 4)
      process.stdout.write('\nThe tunnel is closed: its key was revoked. Ctrl-C ends the rest.\n')
  })
  await makeTraffic(new URL(edge.url), open.host)
}

async function makeTraffic(edge: URL, host: string): Promise<void> {
  const until = performance.now() + seconds * 1_000
  let visits = 0
  let bytes = 0
  while (!ending.signal.aborted && performance.now() < until) {
    const [up, down] = [Math.random(), Math.random()].map((part) => Math.floor(part * part * LARGEST_BYTES))
    const { status, bytes: passed } = await visit(edge, host, `/bytes/${down}`, Buffer.alloc(up ?? 0))
    if (status === 200) {
      visits += 1
      bytes += passed
    }
    if (process.stdout.isTTY) process.stdout.write(`\r  ${visits} visits, ${(bytes / 1e6).toFixed(1)} MB `)
    await sleep(VISIT_EVERY_MS, undefined, { signal: ending.signal }).catch(() => undefined)
  }
  process.stdout.write(`\n${visits} visits with ${(bytes / 1e6).toFixed(1)} MB in their bodies.\n`)
}

/** The tunnel first, and the control plane last, so that what was used is reported. */
async function end(): Promise<void> {
  for (const child of children.toReversed()) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    const gone = once(child, 'exit')
    child.kill('SIGTERM')
    await gone
  }
  rmSync(folder, { recursive: true, force: true })
}

try {
  await demonstrate()
} catch (error) {
  process.stderr.write(`\nThe demo failed: ${(error as Error).message}\n`)
  process.exitCode = 1
} finally {
  await end()
}
