// Where an edge gets its keys from: a control plane, or a tokens file.
import type { EdgeOptions } from '../../edge/options.ts'
import { openLocalPorts } from '../../edge/tcp/local-ports.ts'
import {
  ControlPlaneError,
  type CountingLease,
  createControlPlane,
  openTokensFile,
  startMeter,
  startTunnelReporter,
  startVerifier,
  type VerifierOptions,
} from '../../edge-sdk/index.ts'
import { createFetch } from '../../lib/net/proxy/fetch.ts'
import { ProxyError } from '../../lib/net/proxy/tunnel.ts'
import type { EdgeConfig } from '../../server/config/edge.ts'
import { readProxies } from '../../server/config/environment.ts'
import { version } from '../../server/config/server.ts'
import { CommandError, NotAuthenticated, UsageError } from '../errors.ts'

export interface KeyAccess
  extends Pick<EdgeOptions, 'startVerifier' | 'startReporter' | 'meter' | 'localPorts'> {
  /** URL of the control plane, or path of the tokens file. */
  readonly verifiedBy: string
  /** Why the control plane cannot verify keys yet. */
  readonly unreachable?: string | undefined
}

type OnNotice = NonNullable<VerifierOptions['onNotice']>

/** `onReady`: the control plane was unreachable at the start, and is reached now. */
interface AccessEvents {
  onNotice: OnNotice
  onReady(url: string): void
}

/** Without a path of a tokens file, keys are verified by the control plane. */
export const openAccess = (
  file: string | undefined,
  config: EdgeConfig,
  events: AccessEvents,
): Promise<KeyAccess> =>
  file === undefined ? useControlPlane(config, events) : useTokensFile(file, config, events.onNotice)

async function useControlPlane(
  { controlPlaneUrl: url, credential, folder, peerListener }: EdgeConfig,
  { onNotice, onReady }: AccessEvents,
): Promise<KeyAccess> {
  if (url === undefined || credential === undefined) throw missingAccess(url, credential)
  const controlPlane = asUsageError(() =>
    createControlPlane({ url, credential, fetch: createFetch(readProxies()) }),
  )
  const unreachable = await checkCredential(controlPlane, url)
  let reporter: CountingLease | undefined
  const mayCount = () => reporter?.mayCount() ?? false
  const meter = await startMeter(controlPlane, { folder, onNotice, mayCount }).catch(rethrowAsFolderError)
  let isReady = unreachable === undefined
  const onConnected = () => {
    if (!isReady) onReady(url)
    isReady = true
  }
  return {
    startVerifier: (on) =>
      startVerifier(controlPlane, {
        ...on,
        onQuota(workspace, quota) {
          meter.setQuota(workspace, quota)
          on.onQuota(workspace, quota)
        },
        cluster: peerListener !== undefined,
        onNotice,
        onConnected,
      }),
    startReporter(on) {
      const started = startTunnelReporter(controlPlane, {
        ...on,
        peerAddress: peerListener?.address,
        version: `adit ${version}`,
        onNotice,
      })
      reporter = started
      return started
    },
    meter,
    localPorts: undefined,
    verifiedBy: url,
    unreachable,
  }
}

function rethrowAsFolderError({ message }: Error): never {
  throw new CommandError('folder', `${message} ADIT_EDGE_FOLDER sets the folder.`)
}

function missingAccess(url: string | undefined, credential: string | undefined): UsageError {
  const missing = [
    url === undefined && 'ADIT_URL (URL of the control plane)',
    credential === undefined &&
      'ADIT_EDGE_KEY (credential of this edge; create one there with `adit admin edge create <name>`)',
  ].filter(Boolean)
  return new UsageError(
    `Missing ${missing.join(' and ')}. Without a control plane, use --tokens-file <path>.`,
  )
}

/** The reason if the control plane cannot be reached yet; throws if it or a proxy rejects the credential. */
async function checkCredential(
  controlPlane: ReturnType<typeof createControlPlane>,
  url: string,
): Promise<string | undefined> {
  try {
    await controlPlane.verify('')
    return undefined
  } catch (error) {
    if (!(error instanceof ControlPlaneError)) throw error
    if (error.cause instanceof ProxyError && error.cause.isFinal)
      throw new CommandError('proxy_rejected', error.message)
    if (error.status !== 401) return error.message
    throw new NotAuthenticated(`${url} rejected the credential in ADIT_EDGE_KEY: ${error.message}`)
  }
}

async function useTokensFile(
  file: string,
  { tunnelDomain, folder, tcpPorts: { range, ...rules } }: EdgeConfig,
  onNotice: OnNotice,
): Promise<KeyAccess> {
  const localPorts = range && (await openLocalPorts({ folder, range, ...rules }).catch(rethrowAsFolderError))
  return {
    startVerifier: ({ onRevoked }) => openTokensFile(file, { tunnelDomain, onRevoked, onNotice }),
    startReporter: undefined,
    meter: undefined,
    localPorts,
    verifiedBy: file,
  }
}

function asUsageError<T>(create: () => T): T {
  try {
    return create()
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}
