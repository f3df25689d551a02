// `adit edge`: carries tunnels for whoever has a good key, and reports what they use.
import { type EdgeConfig, readEdgeConfig, unknownSettings } from '../config.ts'
import {
  ControlPlaneError,
  createControlPlane,
  openTokensFile,
  startMeter,
  startVerifier,
  TokensFileError,
  type VerifierOptions,
} from '../edge-sdk/index.ts'
import { createLog, flushLog } from '../log.ts'
import { type EdgeOptions, startEdge } from '../tunnels/edge/edge.ts'
import { CommandError, NotAuthenticated, UsageError } from './errors.ts'
import type { Io } from './io.ts'
import { awaitShutdown } from './shutdown.ts'

type Access = Pick<EdgeOptions, 'startVerifier' | 'meter'>
type OnNotice = NonNullable<VerifierOptions['onNotice']>

export async function edge(given: { 'tokens-file': string | undefined }, io: Io): Promise<void> {
  const config = readEdgeConfig()
  const log = createLog(config.logLevel)
  const unknown = unknownSettings()
  if (unknown.length > 0) log.warn({ unknown }, 'these environment variables are no settings of adit')
  const file = given['tokens-file']
  const onNotice: OnNotice = (line) => log.warn(line)
  const stopping = awaitShutdown(0)
  const access = await (file === undefined
    ? byControlPlane(config, onNotice)
    : byTokensFile(file, config, onNotice))
  const { url, stop } = await startEdge({
    ...config,
    ...access,
    onOpened: ({ host, holder }) =>
      log.info({ host, workspace: holder.workspace, key: holder.keyId }, 'tunnel opened'),
    onClosed: ({ host, holder, totals }, ending) =>
      log.info({ host, workspace: holder.workspace, key: holder.keyId, ending, ...totals }, 'tunnel closed'),
    onUnnamedClient: (proxy) =>
      log.warn(
        { proxy },
        'a trusted proxy sends no X-Forwarded-For, so its clients are not limited; let it send that header, ' +
          'or remove it from ADIT_EDGE_TRUSTED_PROXIES',
      ),
    onIgnoredProxy: (peer) =>
      log.warn(
        { peer },
        'X-Forwarded-For is ignored; if this is your proxy, name it in ADIT_EDGE_TRUSTED_PROXIES',
      ),
  }).catch((error) => {
    throw explained(error, config)
  })
  const governed = file === undefined ? `by ${config.controlPlaneUrl}` : `by ${file}, without a control plane`
  io.data(
    { url, pid: process.pid },
    `\nThe edge is open, governed ${governed}.\n\n  Address   ${url}\n  A tunnel  adit tunnel <port> --edge ${url}\n`,
  )
  log.info({ reason: await stopping.asked }, 'stopping: answering what is under way, and closing tunnels')
  await stop()
  log.info('stopped')
  await flushLog(log)
  process.exit()
}

async function byControlPlane(
  { controlPlaneUrl: url, credential, folder }: EdgeConfig,
  onNotice: OnNotice,
): Promise<Access> {
  if (url === undefined || credential === undefined)
    throw new UsageError(
      'An edge needs the address of its control plane in ADIT_URL and its credential in ADIT_EDGE_KEY, which "adit admin ' +
        'edge create <name>" makes there. Without a control plane it needs --tokens-file <path>.',
    )
  const controlPlane = explainedTypes(() => createControlPlane({ url, credential }))
  // A control plane that is away may come back; a credential that is refused stays so.
  await controlPlane.verify('').catch((error) => {
    if (error instanceof ControlPlaneError && error.status === 401)
      throw new NotAuthenticated(`The credential in ADIT_EDGE_KEY is no good at ${url}. ${error.message}`)
  })
  const meter = await startMeter(controlPlane, { folder, onNotice }).catch((error: Error) => {
    throw new CommandError('folder', `${error.message} ADIT_EDGE_FOLDER names the folder for usage.`)
  })
  return { startVerifier: (on) => startVerifier(controlPlane, { ...on, onNotice }), meter }
}

function byTokensFile(file: string, { tunnelDomain }: EdgeConfig, onNotice: OnNotice): Access {
  return {
    startVerifier: ({ onRevoked }) => openTokensFile(file, { tunnelDomain, onRevoked, onNotice }),
    meter: undefined,
  }
}

function explainedTypes<T>(make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

function explained(error: unknown, { host, port }: EdgeConfig): unknown {
  if (error instanceof TokensFileError) return new CommandError('tokens_file', error.message)
  const { code, message, port: taken } = error as NodeJS.ErrnoException & { port?: number }
  const setting = taken === port ? 'ADIT_EDGE_PORT' : 'ADIT_EDGE_PIPENET_PORT'
  if (code === 'EADDRINUSE')
    return new CommandError(
      'address',
      `Another program listens on ${host}:${taken}. Stop it, or set ${setting} to a free port.`,
    )
  if (code !== undefined)
    return new CommandError('address', `The edge cannot listen on ${host}:${taken ?? port}: ${message}.`)
  return error
}
