// What `adit edge` prints when it has started, and when it cannot.
import { TokensFileError } from '../../edge-sdk/index.ts'
import { listenError } from '../../lib/net/listen-error.ts'
import type { EdgeConfig } from '../../server/config/edge.ts'
import { commandName } from '../../server/config/environment.ts'
import { CommandError } from '../errors.ts'
import type { Io } from '../io.ts'
import { green, type Text, yellow } from '../style.ts'
import { withCertificateAdvice } from '../tunnels/certificate-advice.ts'
import type { KeyAccess } from './access.ts'

interface Urls {
  readonly url: string
  readonly metricsUrl: string | undefined
}

export function announceEdge(io: Io, { url, metricsUrl }: Urls, access: KeyAccess): void {
  const { unreachable, meter } = access
  const controlPlane = meter && { controlPlane: unreachable ? 'unreachable' : 'reachable' }
  const facts = { url, ...(metricsUrl && { metrics: metricsUrl }), pid: process.pid, ...controlPlane }
  io.data(facts, announcement(url, metricsUrl, access))
}

function announcement(
  url: string,
  metricsUrl: string | undefined,
  { verifiedBy, unreachable }: KeyAccess,
): Text {
  if (unreachable)
    return [
      '\n',
      yellow('Not ready:'),
      ` the control plane cannot be reached. ${withCertificateAdvice(unreachable)}\n`,
      `Edge listening on ${url}; it retries, and rejects tunnels until ${verifiedBy} responds.\n`,
    ]
  return [
    '\n',
    green('Edge listening'),
    ` on ${url}; keys verified by ${verifiedBy}\n\n`,
    ...(metricsUrl ? [`  Metrics        ${metricsUrl}\n`] : []),
    `  Open a tunnel  ${commandName()} tunnel 3000 --edge ${url}\n`,
  ]
}

export function toStartError(error: unknown, { peerListener, ...address }: EdgeConfig): unknown {
  if (error instanceof TokensFileError) return new CommandError('tokens_file', error.message)
  const { code, port } = error as NodeJS.ErrnoException & { port?: number }
  if (code === undefined) return error
  return peerListener && port === peerListener.port
    ? listenError(peerListener, 'ADIT_EDGE_PEER', error)
    : listenError(address, 'ADIT_EDGE', error)
}
