// What a tunnel leads to: a local server, or with --serve the files of a folder.
import { X509Certificate } from 'node:crypto'
import { readFile, realpath, stat } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { InspectedTunnel } from '../../inspector/open.ts'
import { HOST_HEADER_RULE, isHost } from '../../lib/net/host-header.ts'
import { privatePaths } from '../../server/config/private-paths.ts'
import { Dialer, type Target, type TlsOptions } from '../../tunnel-client/dialer.ts'
import { FileServer } from '../../tunnel-client/files/file-server.ts'
import { findAditData } from '../../tunnel-client/files/private-files.ts'
import { LocalServer, type StreamServer } from '../../tunnel-client/local-server.ts'
import { InvalidTarget, parseTarget } from '../../tunnel-client/target.ts'
import type { TunnelRequest, TunnelType } from '../../tunnel-protocol/protocol.ts'
import { UsageError } from '../errors.ts'
import { flagSource, type OptionSource } from './option-source.ts'
import { type ProblemHandlers, ProblemLog } from './problems.ts'

export interface TargetInput {
  target: string | undefined
  /** A folder. */
  serve?: string | undefined
  'host-header'?: string | undefined
  insecure?: boolean
  /** A file of certificates. */
  ca?: string | undefined
  /** Its requests are recorded. */
  inspect?: boolean
  /** The flags, without it. */
  source?: OptionSource
}

interface OpenTarget {
  /** Its URL. */
  target: string
  /** The beginning of a sentence about it. */
  note: string
  localServer: StreamServer
  /** Undefined for a folder. */
  problems?: ProblemLog
  /** What the edge has to know of it. */
  request: Pick<TunnelRequest, 'target' | 'hostHeader'>
  /** Its record of requests, with `inspect`. */
  inspected?: InspectedTunnel | undefined
}

export async function openTarget(
  type: TunnelType,
  input: TargetInput,
  handlers: ProblemHandlers,
  inspect: (target: string, dial: () => Promise<Socket>) => InspectedTunnel | undefined,
): Promise<OpenTarget> {
  const { target: text, serve, 'host-header': hostHeader, source = flagSource } = input
  if (serve !== undefined) {
    if (text !== undefined) throw new UsageError('A tunnel has a target or --serve <folder>, not both.')
    for (const option of ['host-header', 'insecure', 'ca', 'inspect'] as const)
      if (input[option])
        throw source.invalid(option, (name) => `${name(option)} has no effect on ${name('serve')}.`)
    return openFolder(serve, source)
  }
  if (text === undefined)
    throw new UsageError(
      'Missing argument <target>, or the flag --serve <folder>. Run `adit tunnel --help` for usage.',
    )
  if (hostHeader !== undefined && !isHost(hostHeader))
    throw source.invalid(
      'host-header',
      (name) => `Invalid ${name('host-header')} "${hostHeader}" (expected ${HOST_HEADER_RULE}).`,
    )
  const { url, origin, target } = readTarget(type, text, await readTls(input, source), source)
  const problems = new ProblemLog({
    ...handlers,
    target: url,
    source,
    probeTls: () => localServer.probeTls(),
  })
  const inspected = inspect(url, () => dial(target))
  const localServer = new LocalServer({
    target,
    observer: inspected?.observer,
    isHttp: type === 'http',
    onProblem: (problem, message) => problems.onConnectProblem(problem, message),
    onReachable: () => problems.onReachable(),
    onGreeting: (problem) => problems.onGreeting(problem),
  })
  const request = type === 'http' ? { target: origin, hostHeader } : {}
  return { target: url, note: `Forwarding to ${url}`, localServer, request, problems, inspected }
}

const dial = (target: Target) =>
  new Promise<Socket>((resolve, reject) => {
    new Dialer(target).dial({ onConnect: resolve, onError: reject })
  })

function readTarget(type: TunnelType, text: string, tls: TlsOptions | undefined, source: OptionSource) {
  const names = { tls: '--insecure and --ca', folder: source.advise('serve', '<folder>') }
  try {
    return parseTarget(type, text, tls, names)
  } catch (error) {
    throw error instanceof InvalidTarget ? source.invalid('target', () => error.message) : error
  }
}

/** The options for https:// targets; undefined if there are none. */
async function readTls(
  { insecure = false, ca }: TargetInput,
  source: OptionSource,
): Promise<TlsOptions | undefined> {
  if (ca === undefined) return insecure ? { isInsecure: true } : undefined
  if (insecure)
    throw new UsageError('--insecure accepts any certificate, so --ca has no effect. Use one of them.')
  try {
    const pem = await readFile(ca, 'utf8')
    new X509Certificate(pem)
    return { ca: pem, isInsecure: false }
  } catch (error) {
    throw source.invalid(
      'ca',
      (name) =>
        `Cannot use ${name('ca')} ${ca}: ${(error as Error).message}. It must be a certificate in PEM.`,
    )
  }
}

async function openFolder(path: string, source: OptionSource): Promise<OpenTarget> {
  const folder = await realpath(path).catch(() => undefined)
  if (folder === undefined || !(await stat(folder)).isDirectory())
    throw source.invalid(
      'serve',
      (name) => `There is no folder ${resolve(path)}. ${name('serve')} shares the files of a folder.`,
    )
  const data = await findAditData(folder, privatePaths())
  if (data !== undefined)
    throw new UsageError(
      `${folder} is not served, because data of Adit would be published: ${data}. ` +
        'Move it, or serve a folder of its own, e.g. `mkdir public` and `adit tunnel --serve public`.',
    )
  const target = pathToFileURL(folder).href
  return { target, note: `Serving the files of ${folder}`, localServer: new FileServer(folder), request: {} }
}
