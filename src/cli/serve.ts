// `adit serve`: starts the server, tells where it is and, the very first time, hands out a key to try it with.
import { openWorld, startServer } from '../app.ts'
import { type Config, readConfig } from '../config.ts'
import { type FirstRun, prepareFirstRun } from '../domain/first-run.ts'
import { createLog } from '../log.ts'
import type { Io } from './io.ts'

/** A database that starts beside the server may take a while. */
const PATIENCE_MS = 60_000

export async function serve(io: Io): Promise<void> {
  const config = readConfig()
  const log = createLog(config.logLevel)
  const world = await openWorld(config, log, PATIENCE_MS)
  const { url, stop } = await startServer(config, world, log)
  // Many nodes share a PostgreSQL: there, what exists is the operator's to decide.
  const first = world.store.engine === 'sqlite' ? await prepareFirstRun(world) : undefined
  greet(io, config, config.baseUrl ?? url, first)

  const signal = await new Promise<string>((resolve) => {
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => resolve(name))
  })
  // Whoever asks a second time does not want to wait.
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => process.exit(1))
  log.info({ signal }, 'stopping: finishing what is in flight')
  await stop()
  log.info('stopped')
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
