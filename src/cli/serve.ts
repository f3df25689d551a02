// `adit serve`: starts the server, tells where it is and, the very first time, hands out a key to try it with.
import { startServer } from '../app.ts'
import { type Config, readConfig, unknownSettings } from '../config.ts'
import { hasAnyUser } from '../domain/accounts.ts'
import type { Services } from '../domain/context.ts'
import { type FirstRun, isEmpty, prepareFirstRun } from '../domain/first-run.ts'
import { linkAddress } from '../domain/links.ts'
import { createLog, flushLog } from '../log.ts'
import { openServices } from '../services.ts'
import { requireSecret } from '../session-secret.ts'
import type { Io } from './io.ts'
import { awaitShutdown } from './shutdown.ts'

/** A database that starts beside the server may take a while. */
const PATIENCE_MS = 60_000
const LEAVE_AFTER_MS = 500
/** Once it serves, and not while it starts. */
const LOAD_SIGN_IN_AFTER_MS = 1_000

export async function serve(io: Io): Promise<void> {
  const config = readConfig()
  requireSecret(config)
  const log = createLog(config.logLevel)
  const unknown = unknownSettings()
  if (unknown.length > 0) log.warn({ unknown }, 'these environment variables are no settings of adit')
  const services = await openServices(config, log, PATIENCE_MS)
  const { stopDelayS } = config
  const stopping = awaitShutdown(stopDelayS)
  const { url, loadSignIn, announceStop, stop } = await startServer(config, services, log)
  const loading = setTimeout(() => {
    const began = performance.now()
    loadSignIn().then(
      () => log.debug({ ms: Math.round(performance.now() - began) }, 'sign-in loaded'),
      (error) => log.error({ err: error }, 'failed to load sign-in'),
    )
  }, LOAD_SIGN_IN_AFTER_MS).unref()
  try {
    greet(io, config, config.baseUrl ?? url, await findAccess(services))
    const reason = await stopping.asked
    announceStop()
    if (stopDelayS > 0) log.info({ reason, stopDelayS }, 'stopping soon: /readyz says so, and all are served')
    await stopping.due
    log.info({ reason }, 'stopping: finishing what is in flight')
  } finally {
    clearTimeout(loading)
    await stop()
    log.info('stopped')
    // A log that nobody reads would hold up even the exit, which waits for its last lines. Nothing else is left to do.
    if (!(await flushLog(log))) process.kill(process.pid, 'SIGKILL')
  }
  // Whatever is still open by now, such as a connection to a database that does not answer, must not keep us.
  setTimeout(() => process.exit(), LEAVE_AFTER_MS).unref()
}

/** What the person who started it can begin with. */
type Access = FirstRun | 'people are there' | 'keys are there' | 'nothing is there'

async function findAccess(services: Services): Promise<Access> {
  // Many nodes share a PostgreSQL: there, what exists is the operator's to decide.
  if (services.store.engine === 'postgres' && (await isEmpty(services))) return 'nothing is there'
  return (
    (await prepareFirstRun(services)) ??
    ((await hasAnyUser(services)) ? 'people are there' : 'keys are there')
  )
}

function greet(io: Io, config: Config, url: string, access: Access): void {
  const facts = { url, api: `${url}/api/v1`, docs: `${url}/docs`, variant: config.variant, pid: process.pid }
  const lines = [
    '',
    `Adit is serving (variant ${facts.variant} of the API).`,
    '',
    `  Dashboard      ${url}`,
    `  API            ${facts.api}`,
    `  Documentation  ${facts.docs}`,
  ]
  if (access === 'people are there') {
    lines.push('  A new key      adit admin key create --workspace <slug>')
  } else if (access === 'keys are there') {
    lines.push(
      '  A new key      adit admin key create --workspace <slug>',
      '',
      'Nobody can sign in to the dashboard yet. Make a link for its first owner:',
      '',
      '  adit admin user create <e-mail> --workspace <slug> --role owner',
    )
  } else if (access === 'nothing is there') {
    lines.push(
      '',
      'The database is empty. Make a workspace and a key:',
      '',
      '  adit admin workspace create <slug> --provisioned',
      '  adit admin key create --workspace <slug>',
      '  adit admin user create <e-mail> --workspace <slug> --role owner',
    )
  } else {
    lines.push(
      `  API key        ${access.key.token}`,
      '',
      `That is the key of the new workspace "${access.workspace.slug}". It is shown this once; try it:`,
      '',
      `  curl -H "Authorization: Bearer ${access.key.token}" ${facts.api}/workspace`,
      '',
      'To sign in to the dashboard, become its first owner with this link, once and within 24 hours:',
      '',
      `  ${linkAddress(url, access.link.secret)}`,
    )
  }
  const first = typeof access === 'object' && {
    workspace: access.workspace.slug,
    token: access.key.token,
    setupLink: linkAddress(url, access.link.secret),
  }
  io.data({ ...facts, ...first }, [...lines, ''].join('\n'))
}
