// `adit serve --edge`: runs an edge as a child process. To the control plane it is an edge like any other.
// Its credential is stored in its folder, so that it is the same edge after a restart.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { isSea } from 'node:sea'
import type { Logger } from 'pino'
import { isLoopbackHost } from '../../lib/net/hostname.ts'
import { readEdgeConfig } from '../../server/config/edge.ts'
import { commandName, localEdgeEnvironment } from '../../server/config/environment.ts'
import type { Services } from '../../server/domain/context.ts'
import { Fault } from '../../server/domain/fault.ts'
import { createEdge, findByCredential, setUrl } from '../../server/domain/tunnels/edges.ts'

const RESTART_DELAY_MS = 1_000
/** A single executable needs no script argument. */
const programArgs = isSea() ? [] : [...process.execArgv, process.argv[1] as string]
const SERVER = { kind: 'server', id: 'adit' } as const

export interface LocalEdge {
  /** Undefined if the edge did not start; the edge has logged the error. */
  readonly url: string | undefined
  stop(): Promise<void>
}

interface LocalEdgeOptions {
  /** The URL at which the edge reaches the server. */
  readonly controlPlaneUrl: string
  /** The URL at which users reach the server. */
  readonly baseUrl: string | undefined
}

export async function startLocalEdge(
  services: Services,
  { controlPlaneUrl, baseUrl }: LocalEdgeOptions,
  log: Logger,
): Promise<LocalEdge> {
  const edge = await prepareEdge(services)
  const isPublic = baseUrl !== undefined && !isLoopbackUrl(baseUrl)
  const environment = localEdgeEnvironment(controlPlaneUrl, edge.token)
  let isStopping = false
  let child: ChildProcess

  async function start(): Promise<string | undefined> {
    // Detached, because Ctrl-C would stop both at once, and the edge has to report its last usage first. It
    // exits when the IPC channel closes, so it does not outlive a server that is killed.
    child = spawn(process.execPath, [...programArgs, 'edge', '--json'], {
      env: environment,
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
      detached: true,
    })
    const exited = once(child, 'exit').catch(() => [])
    const url = await Promise.race([readUrl(child), exited.then(() => undefined)])
    if (url === undefined)
      log.error('the edge did not start, see its error above; tunnels do not work without it')
    else exited.then(([code, signal]) => restart(code, signal))
    if (url !== undefined && url !== edge.url)
      await registerUrl(url).catch((error) =>
        log.error({ err: error }, 'failed to store the URL of the edge'),
      )
    return url
  }

  /**
   * Stores the URL if clients can use it. For clients on other machines, only the operator knows the right
   * one.
   */
  async function registerUrl(url: string): Promise<void> {
    const isUnknown = edge.url === null || isLoopbackUrl(edge.url)
    if (isLocal(services.tunnelDomain) || (!isPublic && isUnknown)) {
      await setUrl(services, SERVER, edge.id, url)
      edge.url = url
    } else if (isUnknown) {
      // Removes the loopback URL, which was stored before the server had a public one.
      if (edge.url !== null) await setUrl(services, SERVER, edge.id, null)
      edge.url = null
      log.warn(
        { tunnelDomain: services.tunnelDomain },
        'clients look for the edge at the tunnel domain; if it is elsewhere, set its URL: ' +
          `${commandName()} admin edge set-url ${edge.id} <url>`,
      )
    }
  }

  function restart(code: unknown, signal: unknown): void {
    if (isStopping) return
    log.error({ code, signal }, 'edge exited; restarting')
    setTimeout(async () => {
      if (isStopping) return
      if ((await start()) === undefined) restart(child.exitCode, child.signalCode)
    }, RESTART_DELAY_MS).unref()
  }

  return {
    url: await start(),
    async stop() {
      isStopping = true
      if (child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
    },
  }
}

async function readUrl(child: ChildProcess): Promise<string | undefined> {
  const lines = createInterface({ input: child.stdout as NonNullable<ChildProcess['stdout']> })
  for await (const line of lines) return (JSON.parse(line) as { url: string }).url
  return undefined
}

/**
 * The name `local` is taken if several machines with such an edge share a database, or its folder was lost.
 */
const createLocalEdge = (services: Services) =>
  createEdge(services, SERVER, 'local').catch((error) => {
    if (!(error instanceof Fault && error.code === 'conflict')) throw error
    return createEdge(services, SERVER, `local ${hostname()} ${randomBytes(4).toString('hex')}`)
  })

const isLoopbackUrl = (url: string) => isLoopbackHost(new URL(url).hostname)

const isLocal = (tunnelDomain: string) => /(^|\.)localhost$/.test(tunnelDomain)

/**
 * Finds the edge by its stored credential. Creates one if that was revoked or belongs to another database.
 */
async function prepareEdge(services: Services) {
  const { folder } = readEdgeConfig()
  const file = join(folder, 'credential')
  const stored = existsSync(file) ? readFileSync(file, 'utf8').trim() : ''
  const known = await findByCredential(services, stored)
  if (known) return known
  const created = await createLocalEdge(services)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  writeFileSync(file, `${created.token}\n`, { mode: 0o600, flush: true })
  return created
}
