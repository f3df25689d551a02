// `adit serve`: starts the server, tells where it is and, the very first time, hands out a key to try it with.
import { startServer } from '../app.ts'
import { type Config, readConfig } from '../config.ts'
import { type FirstRun, prepareFirstRun } from '../domain/first-run.ts'
import { createLog } from '../log.ts'
import { openWorld } from '../world.ts'
import type { Io } from './io.ts'

/** A database that starts beside the server may take a while. */
const PATIENCE_MS = 60_000
const IMPATIENT_MS = 1_000

export async function serve(io: Io): Promise<void> {
  const config = readConfig()
  const log = createLog(config.logLevel)
  const world = await openWorld(config, log, PATIENCE_MS)
  const { url, stop } = await startServer(config, world, log)
  // Many nodes share a PostgreSQL: there, what exists is the operator's to decide.
  const first = world.store.engine === 'sqlite' ? await prepareFirstRun(world) : undefined
  greet(io, config, config.baseUrl ?? url, first)

  const signal = await stopAsked()
  log.info({ signal }, 'stopping: finishing what is in flight')
  await stop()
  log.info('stopped')
}

/**
 * Resolves with the first signal to stop. Whoever asks again later does not want to wait; but at a terminal npm hands
 * the same Ctrl-C on a second time, at once, and that is no second wish.
 */
function stopAsked(): Promise<string> {
  return new Promise((resolve) => {
    let askedAt: number | undefined
    const onSignal = (name: string) => {
      if (askedAt === undefined) resolve(name)
      else if (performance.now() - askedAt > IMPATIENT_MS) process.exit(1)
      askedAt ??= performance.now()
    }
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, onSignal)
  })
}

function greet(io: Io, config: Config, url: string, first: FirstRun | undefined): void {
  const api = `${url}/api/v1`
  const docs = `${url}/docs`
  const facts = { url, api, docs, variant: config.variant, pid: process.pid }
  const lines = [
    '',
    `Adit is serving the API (variant ${config.variant}).`,
    '',
    `  API            ${api}`,
    `  Documentation  ${docs}`,
  ]
  if (!first) {
    io.data(
      facts,
      [...lines, '', '  Need a key?    npx adit admin key create --workspace <slug>', ''].join('\n'),
    )
    return
  }
  const { token } = first.key
  lines.push(
    `  API key        ${token}`,
    '',
    `That is the key of the new workspace "${first.workspace.slug}". It is shown this once; try it:`,
    '',
    `  curl -H "Authorization: Bearer ${token}" ${api}/workspace`,
    '',
  )
  io.data({ ...facts, workspace: first.workspace.slug, token }, lines.join('\n'))
}
