// `npm run demo`: the whole product in one command. Starts a control plane, an edge, a sample web server and
// a tunnel to it, each with the public CLI, and sends traffic. All data is in a temporary folder.
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

const HELP = `Usage: npm run demo [-- --seconds <number>]

Starts a control plane, an edge, a sample web server and a tunnel to it, and sends traffic through the
tunnel until Ctrl-C, or for the given number of seconds. All data is in a temporary folder that is deleted
at the end.
`
const TUNNEL_NAME = 'my-app'
const REQUEST_INTERVAL_MS = 250
const BODY_BYTES_MAX = 200_000
const adit = fileURLToPath(new URL('../bin/adit.js', import.meta.url))

const seconds = parseSeconds()
const folder = mkdtempSync(join(tmpdir(), 'adit-demo-'))
const stopping = new AbortController()
const children: ChildProcess[] = []
awaitShutdown(0).requested.then(() => stopping.abort())
process.on('SIGHUP', () => stopping.abort())

function parseSeconds(): number {
  try {
    const { values } = parseArgs({ options: { seconds: { type: 'string' }, help: { type: 'boolean' } } })
    if (values.help) {
      process.stdout.write(HELP)
      process.exit(0)
    }
    const seconds = Number(values.seconds ?? Number.POSITIVE_INFINITY)
    if (seconds > 0) return seconds
    throw new Error(`Invalid --seconds "${values.seconds}" (expected a number above 0)`)
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${HELP}`)
    process.exit(2)
  }
}

const print = (text: string) => process.stdout.write(text)

/** Shows a step while it runs, and its result in the same line. */
async function step<T>(title: string, run: () => Promise<T>, describe: (result: T) => string): Promise<T> {
  if (process.stdout.isTTY) print(`  … ${title}`)
  const result = await run()
  print(`${process.stdout.isTTY ? '\r' : ''}  ✓ ${title.padEnd(14)} ${describe(result)}\n`)
  return result
}

/** Only the demo's own settings: those of the user's environment are for other deployments. */
const environment = (more: Record<string, string> = {}) => ({
  PATH: process.env.PATH ?? '',
  HOME: folder,
  ADIT_LOG_LEVEL: 'warn',
  // Makes the commands exit when this process is gone, as they do when npm is.
  npm_lifecycle_event: 'demo',
  ADIT_DATABASE_URL: `sqlite:${join(folder, 'adit.db')}`,
  ...more,
})

/** Starts a long-running command and resolves with its first line of JSON. */
async function start<T>(
  args: string[],
  env: Record<string, string>,
  stderr: 'inherit' | 'ignore' = 'inherit',
): Promise<T & { child: ChildProcess }> {
  // In a process group of its own: Ctrl-C reaches only this process, which stops the others in order.
  const child = spawn(process.execPath, [adit, ...args, '--json'], {
    env: environment(env),
    stdio: ['ignore', 'pipe', stderr],
    detached: true,
  })
  children.push(child)
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout?.once('data', (chunk) => resolve(String(chunk).split('\n')[0] as string))
    child.once('exit', () => reject(new Error(`"adit ${args.join(' ')}" exited.`)))
  })
  return { ...(JSON.parse(line) as T), child }
}

/** The default port, or any free port if it is in use. */
const freePort = (preferred: number) =>
  new Promise<string>((resolve) => {
    const probe = createNetServer()
    probe.once('error', () => resolve('0'))
    probe.listen(preferred, '127.0.0.1', () => probe.close(() => resolve(String(preferred))))
  })

/** Serves a page, and bodies of any size under /bytes/. */
async function startLocalServer(): Promise<number> {
  const server = createServer((request, response) => {
    const [, bytes] = /^\/bytes\/(\d{1,7})$/.exec(request.url ?? '') ?? []
    const body = bytes
      ? Buffer.alloc(Number(bytes), '.')
      : 'Hello from the sample web server, through a tunnel.\n'
    request.resume().once('end', () => response.end(body))
  })
  server.listen(0, 'localhost')
  await once(server, 'listening')
  server.unref()
  return (server.address() as AddressInfo).port
}

async function startEdge(controlPlaneUrl: string) {
  const args = [adit, 'admin', 'edge', 'create', 'demo-edge']
  const credential = execFileSync(process.execPath, args, {
    env: environment(),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim()
  return start<{ url: string }>(['edge'], {
    ADIT_URL: controlPlaneUrl,
    ADIT_EDGE_KEY: credential,
    ADIT_EDGE_PORT: await freePort(8081),
    ADIT_EDGE_FOLDER: join(folder, 'edge'),
  })
}

async function runDemo(): Promise<void> {
  print('\nStarting Adit on this machine. Data is in a temporary folder.\n\n')
  const controlPlane = await step(
    'Control plane',
    async () =>
      start<{ url: string; token: string; setupLink: string }>(['serve'], {
        ADIT_PORT: await freePort(8080),
      }),
    ({ url }) => url,
  )
  const edge = await step(
    'Edge',
    () => startEdge(controlPlane.url),
    ({ url }) => url,
  )
  const port = await step('Local server', startLocalServer, (port) => `http://localhost:${port}`)
  const access = { ADIT_URL: controlPlane.url, ADIT_API_KEY: controlPlane.token, ADIT_EDGE_URL: edge.url }
  const tunnel = await step(
    'Tunnel',
    // Its messages are ignored: the demo reports a revoked key itself.
    () =>
      start<{ url: string; host: string }>(['tunnel', String(port), '--name', TUNNEL_NAME], access, 'ignore'),
    ({ url }) => `${url} → localhost:${port}`,
  )
  tunnel.child.stdout?.resume()
  tunnel.child.once('exit', (code) => {
    if (code === 4) print('\n  The tunnel was closed: its key was revoked. Press Ctrl-C to stop the demo.\n')
  })
  print(nextSteps(tunnel.url, controlPlane.setupLink, access))
  await sendTraffic(new URL(edge.url), tunnel.host)
}

const HOW_IT_ENDS = Number.isFinite(seconds) ? `Stops after ${seconds} s.` : 'Press Ctrl-C to stop.'

const nextSteps = (tunnelUrl: string, setupLink: string, access: Record<string, string>) => `
Call the local server through the tunnel:

  curl ${tunnelUrl}/

Open the dashboard, create the owner account and watch Usage. Revoke the key there, and the tunnel closes:

  ${setupLink}

Use the CLI in another terminal, for example \`adit usage\` or \`adit tunnel 3000\`:

  alias adit='npx --no-install adit'
  export ${Object.entries(access)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')}

Sending traffic through the tunnel. ${HOW_IT_ENDS}

`

async function sendTraffic(edge: URL, host: string): Promise<void> {
  const until = performance.now() + seconds * 1_000
  const total = { requests: 0, bytes: 0 }
  const summary = () => `${total.requests} requests, ${(total.bytes / 1e6).toFixed(1)} MB`
  while (!stopping.signal.aborted && performance.now() < until) {
    // Squared, so that most bodies are small.
    const [up, down] = [Math.random(), Math.random()].map((part) => Math.floor(part * part * BODY_BYTES_MAX))
    const { status, bytes } = await post(edge, host, `/bytes/${down}`, Buffer.alloc(up ?? 0))
    if (status === 200) {
      total.requests += 1
      total.bytes += bytes
    }
    if (process.stdout.isTTY) print(`\r  ${summary()} `)
    await sleep(REQUEST_INTERVAL_MS, undefined, { signal: stopping.signal }).catch(() => undefined)
  }
  print(`${process.stdout.isTTY ? '\r' : ''}  ${summary()} sent. Stopping …\n`)
}

/** Connects to the edge directly, so that names under localhost need not resolve. */
const post = (edge: URL, host: string, path: string, body: Buffer) =>
  new Promise<{ status: number; bytes: number }>((resolve, reject) => {
    const options = {
      host: edge.hostname,
      port: edge.port,
      path,
      method: 'POST',
      headers: { host },
      agent: false,
    }
    const sent = request(options, (response) => {
      let bytes = body.length
      response.on('data', (chunk) => {
        bytes += chunk.length
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, bytes }))
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })

/** Stops the tunnel first and the control plane last, so that all usage is reported. */
async function stopAll(): Promise<void> {
  for (const child of children.toReversed()) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    await exited
  }
  rmSync(folder, { recursive: true, force: true })
}

try {
  await runDemo()
} catch (error) {
  process.stderr.write(`\nThe demo failed: ${(error as Error).message}\n`)
  process.exitCode = 1
} finally {
  await stopAll()
}
