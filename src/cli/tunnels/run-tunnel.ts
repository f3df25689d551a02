// One tunnel of `adit tunnel` or `adit start`: its target and access rules, and what it prints while it runs.

import type { Inspector } from '../../inspector/open.ts'
import { DNS_LABEL_RULE, isDnsLabel } from '../../lib/net/hostname.ts'
import { readProxies } from '../../server/config/environment.ts'
import { version } from '../../server/config/server.ts'
import { TunnelRejected } from '../../tunnel-client/connect.ts'
import { DRAIN_MS, runTunnel } from '../../tunnel-client/run.ts'
import type { Opened, RequestedAccess, TunnelType } from '../../tunnel-protocol/protocol.ts'
import { type ApiAccess, keyRejected } from '../api.ts'
import { CommandError, UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { awaitShutdown, STOP_SIGNALS } from '../server/shutdown.ts'
import { type AccessInput, readAccess } from './access.ts'
import { withCertificateAdvice } from './certificate-advice.ts'
import { type findEdge, isEdgeItself } from './edge-address.ts'
import { flagSource } from './option-source.ts'
import type { TunnelOutput } from './output.ts'
import type { ProblemHandlers } from './problems.ts'
import { openTarget, type TargetInput } from './target.ts'

/** Edges add this to messages, for callers that do not retry automatically. */
const RETRY_ADVICE = / Retry (shortly|later)\.$/

export interface TunnelInput extends TargetInput, AccessInput {
  name: string | undefined
  pool: boolean
}

export interface PreparedTunnel {
  readonly type: TunnelType
  readonly input: TunnelInput
  readonly target: Awaited<ReturnType<typeof openTarget>>
  readonly access: RequestedAccess | undefined
  readonly output: TunnelOutput
}

/** Rejects invalid options. Asks for the password of the tunnel, if it has one. */
export async function prepareTunnel(
  type: TunnelType,
  input: TunnelInput,
  output: TunnelOutput,
  io: Io,
  inspector?: Inspector,
): Promise<PreparedTunnel> {
  const { name, source = flagSource } = input
  if (name !== undefined && !isDnsLabel(name))
    throw source.invalid(
      'name',
      (option) => `Invalid ${option('name')} "${name}" (expected ${DNS_LABEL_RULE}).`,
    )
  const handlers: ProblemHandlers = {
    onProblem(code, message) {
      output.warn(message)
      output.event('problem', { code, message })
    },
    onResolved(message) {
      output.info(message)
      output.event('resolved', { message })
    },
  }
  const target = await openTarget(type, input, handlers, (url, dial) =>
    input.inspect ? inspector?.inspect(name ?? '', url, dial) : undefined,
  )
  return { type, input, target, access: await readAccess(type, input, io), output }
}

interface RunOptions {
  readonly edge: Awaited<ReturnType<typeof findEdge>>
  readonly signals: ReturnType<typeof shutdownSignals>
  /** Also called after a reconnection. */
  onOpen(opened: Opened): void
  onLost?(): void
}

/** Resolves when the user has stopped the tunnel. Rejects if it was rejected or closed. */
export async function runPrepared(
  { type, input, target, access, output }: PreparedTunnel,
  { edge, signals, onOpen, onLost }: RunOptions,
): Promise<void> {
  const { source = flagSource, 'host-header': hostHeader } = input
  // With another Host, the edge does not find this tunnel again.
  if (hostHeader === undefined && isEdgeItself(target.target, edge.edge))
    throw source.invalid(
      'target',
      () => `The target ${target.target} is the edge itself. Name the port of your app, e.g. 3000.`,
    )
  let isOpened = false
  let lost: string | undefined
  try {
    await runTunnel({
      edge: edge.edge,
      edges: edge.edges,
      key: edge.apiKey,
      type,
      name: input.name,
      pool: input.pool,
      access,
      ...target.request,
      client: `adit ${version}`,
      localServer: target.localServer,
      findProxy: readProxies(),
      ...signals,
      onOpen(opened) {
        const { url, host, name, access } = opened
        if (isOpened) output.info('Reconnected.')
        output.event('open', { type, url, host, name, target: target.target, access })
        target.inspected?.setUrl(name, url)
        onOpen(opened)
        if (!isOpened) target.localServer.check?.()
        isOpened = true
        lost = undefined
      },
      onLost(reason) {
        // The same reason is reported once.
        if (lost === reason || signals.signal.aborted) return
        lost = reason
        const hint = !isOpened && edge.fromDomain ? ' Use --edge or ADIT_EDGE_URL for another edge.' : ''
        const message = withCertificateAdvice(reason)
        output.warn(`${message.replace(RETRY_ADVICE, '')}${hint} Retrying …`)
        output.event('lost', { message })
        onLost?.()
      },
      onRequest(request) {
        output.request(request)
        target.problems?.onRequest(request)
      },
      onConnection: (connection) => output.connection(connection),
      onNotice(message) {
        output.warn(message)
        output.event('notice', { message })
      },
      onDrain: (inProgress) => output.info(drainLine(type, inProgress)),
    })
  } catch (error) {
    throw error instanceof TunnelRejected ? toTunnelError(error, edge.keySource) : error
  } finally {
    // The last line is why the tunnel was closed.
    target.problems?.close()
  }
}

/** The first signal completes what is in progress, the second stops at once. SIGHUP: the terminal is gone. */
export function shutdownSignals() {
  const stop = new AbortController()
  const abort = new AbortController()
  const { requested, due } = awaitShutdown(DRAIN_MS / 1000, [...STOP_SIGNALS, 'SIGHUP'])
  requested.then(() => stop.abort())
  due.then(() => abort.abort())
  return { signal: stop.signal, abortSignal: abort.signal }
}

function drainLine(type: TunnelType, inProgress: number): string {
  const what = type === 'tcp' ? 'connection' : 'request'
  return `Finishing ${inProgress} ${what}${inProgress === 1 ? '' : 's'}. Press Ctrl-C again to stop now.`
}

function toTunnelError({ code, message }: TunnelRejected, keySource: ApiAccess['keySource']): Error {
  if (code === 'unauthorized') return keyRejected(message, keySource)
  if (code === 'invalid_request') return new UsageError(message)
  return new CommandError(code, message)
}
