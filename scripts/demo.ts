// `npm run demo`: the whole product in one command. Starts a control plane, an edge, a sample web server and
// two tunnels to it, each with the public CLI, and sends traffic.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { awaitShutdown } from '../src/cli/server/shutdown.ts'
import { adit, choosePort, databaseUrl, folder, run, start, stopAll } from './demo/processes.ts'
import { createSignInLink } from './demo/sign-in-link.ts'
import { sendTraffic, startLocalServer, type Totals } from './demo/traffic.ts'

const HELP = `Usage: npm run demo [-- --seconds <number>]

Starts a control plane, an edge, a sample web server and tunnels to it, and sends traffic until Ctrl-C, or
for the given number of seconds. All data is in a temporary folder that is deleted at the end. ADIT_PORT and
ADIT_EDGE_PORT set the ports; without them 8080 and 8081 are used, or others if these are in use.
`
const TUNNEL_NAME = 'my-app'
const PRIVATE_NAME = 'private'
/** For a sample server, and shown on the screen. */
const PRIVATE_ACCESS = 'demo:open-sesame'

/** Exit code of `adit tunnel` after a failed authentication. */
const KEY_REVOKED = 4

const seconds = parseSeconds()
const stopping = new AbortController()
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
const progress = (text: string) => process.stdout.isTTY && print(`\r\u001b[K  ${text}`)

interface Served {
  url: string
  token: string
  setupLink: string
  workspace: string
}

interface Opened {
  url: string
  host: string
}

async function runDemo(): Promise<void> {
  progress('Starting the control plane …')
  const controlPlane = await start<Served>(['serve'], { ADIT_PORT: await choosePort('ADIT_PORT', 8080) })
  const access = { ADIT_URL: controlPlane.url, ADIT_API_KEY: controlPlane.token }
  progress('Starting the edge …')
  const { id: edgeId, token: credential } = await run<{ id: string; token: string }>([
    'admin',
    'edge',
    'create',
    'demo-edge',
  ])
  const edge = await start<{ url: string }>(['edge'], {
    ADIT_URL: controlPlane.url,
    ADIT_EDGE_KEY: credential,
    ADIT_EDGE_PORT: await choosePort('ADIT_EDGE_PORT', 8081),
    ADIT_EDGE_FOLDER: join(folder, 'edge'),
  })
  await run(['admin', 'edge', 'set-url', edgeId, edge.url])
  progress('Opening tunnels …')
  const port = String(await startLocalServer())
  const key = await run<{ id: string; token: string }>(['keys', 'create', '--label', TUNNEL_NAME], access)
  // Its messages are not shown: the demo reports a revoked key itself.
  const open = (name: string, env: Record<string, string>) =>
    start<Opened>(['tunnel', port, '--name', name], env, 'pipe')
  const tunnel = await open(TUNNEL_NAME, { ...access, ADIT_API_KEY: key.token })
  const privateTunnel = await open(PRIVATE_NAME, { ...access, ADIT_TUNNEL_BASIC_AUTH: PRIVATE_ACCESS })
  for (const { child, host, lastError } of [tunnel, privateTunnel])
    child.once('close', (code) => {
      if (!code) return
      const reason = code === KEY_REVOKED ? 'its key was revoked.' : (lastError() ?? `exit code ${code}`)
      print(`\r\u001b[K  ${host} was closed: ${reason}\n`)
    })
  const dashboard = await createSignInLink(
    controlPlane.url,
    controlPlane.setupLink,
    `/w/${controlPlane.workspace}/tunnels`,
  )
  const setup = writeSetup({ ...access, ADIT_DATABASE_URL: databaseUrl })
  progress('')
  print(
    screen({
      dashboard,
      tunnel: tunnel.url,
      privateTunnel: privateTunnel.url,
      api: `${controlPlane.url}/docs`,
      setup,
      keyId: key.id,
    }),
  )
  const signal = Number.isFinite(seconds)
    ? AbortSignal.any([stopping.signal, AbortSignal.timeout(seconds * 1_000)])
    : stopping.signal
  const totals = await sendTraffic({ edge: new URL(edge.url), host: tunnel.host, signal }, (now) =>
    progress(summary(now)),
  )
  progress('')
  print(`  ${summary(totals)} sent. Stopping …\n`)
}

const summary = ({ requests, bytes }: Totals) => `${requests} requests, ${(bytes / 1e6).toFixed(1)} MB`

/** A file for other terminals: the command `adit` of this clone, for the control plane of the demo. */
function writeSetup(variables: Record<string, string>): string {
  const file = join(folder, 'env')
  const lines = Object.entries(variables).map(([name, value]) => `export ${name}='${value}'\n`)
  writeFileSync(file, `${lines.join('')}adit() { '${process.execPath}' '${adit}' "$@"; }\n`, { mode: 0o600 })
  return file
}

interface Screen {
  dashboard: string
  tunnel: string
  privateTunnel: string
  api: string
  setup: string
  keyId: string
}

const HOW_IT_ENDS = Number.isFinite(seconds) ? `Stops after ${seconds} s.` : 'Ctrl-C stops it.'

/** At most 80 columns. */
const screen = ({ dashboard, tunnel, privateTunnel, api, setup, keyId }: Screen) => `
  Adit is running on this machine. ${HOW_IT_ENDS}

  OPEN IN A BROWSER
    Dashboard      ${dashboard}
                   Signed in, on the page of open tunnels. Close one there.
    A tunnel       ${tunnel}
    With password  ${privateTunnel}
                   User ${PRIVATE_ACCESS.replace(':', ', password ')}.
    API            ${api}

  TRY IN ANOTHER TERMINAL
    . ${setup}
    curl ${tunnel}/
    adit usage --days 1                 # counted within seconds
    adit tunnel 3000 --name mine        # your own server on port 3000
    adit keys revoke ${keyId} --yes
                                        # closes the first tunnel at once

  Sending traffic through the first tunnel:
`

try {
  await runDemo()
} catch (error) {
  process.stderr.write(`\nThe demo failed: ${(error as Error).message}\n`)
  process.exitCode = 1
} finally {
  await stopAll()
}
