// Tells the owner of a tunnel what is wrong with the local server, with advice: each kind of problem once
// until it is resolved.
import { oneLine } from '../../lib/net/untrusted-text.ts'
import type { ConnectProblem, Framework, NoResponseCause } from '../../tunnel-protocol/problems.ts'
import type { ProxiedRequest } from '../../tunnel-protocol/protocol.ts'
import type { OptionSource } from './option-source.ts'

type Code = NoResponseCause | 'host_rejected'

export interface ProblemHandlers {
  /** `message` is for the user. */
  onProblem(code: Code, message: string): void
  /** The local server can be reached again. */
  onResolved(message: string): void
}

interface ProblemLogOptions extends ProblemHandlers {
  /** URL of the target. */
  readonly target: string
  readonly source: OptionSource
  /** Whether the target speaks TLS; asked if it closes connections. */
  probeTls(): Promise<boolean>
}

/** Problems of every connection: any response proves that they are fixed. Others may concern one path. */
const CONNECTION_PROBLEMS = new Set<Code>([
  'unreachable',
  'certificate',
  'no_tls',
  'tls',
  'http2',
  'not_http',
])
/** A response of the edge, which says nothing about the local server. */
const CLIENT_CLOSED_REQUEST = 499

export class ProblemLog {
  readonly #options: ProblemLogOptions
  /** Unresolved problems, each with the path that had it. */
  readonly #open = new Map<Code, string | undefined>()
  #isClosed = false

  constructor(options: ProblemLogOptions) {
    this.#options = options
  }

  onConnectProblem(problem: ConnectProblem, error: string): void {
    this.#add(problem, undefined, connectMessage(problem, this.#options, oneLine(error)))
  }

  onReachable(): void {
    if (!this.#open.has('unreachable') && !this.#open.has('certificate') && !this.#open.has('no_tls')) return
    this.#resolve(CONNECTION_PROBLEMS)
    this.#options.onResolved(`The local server at ${this.#options.target} can be reached now.`)
  }

  /** The server sent something before it got a request. */
  onGreeting(problem: 'tls' | 'http2' | 'not_http'): void {
    this.#add(problem, undefined, responseMessage(problem, this.#options))
  }

  /** Nothing is reported after this. */
  close(): void {
    this.#isClosed = true
  }

  onRequest(request: ProxiedRequest): void {
    const { problem, path, status } = request
    if (problem === undefined) {
      if (status !== CLIENT_CLOSED_REQUEST) this.#onSuccess(path)
    } else if (problem === 'host_rejected')
      this.#add(problem, path, hostMessage(request.framework, this.#options))
    else if (problem === 'closed') void this.#onClosed(path)
    else if (problem !== 'no_response') this.#add(problem, path, responseMessage(problem, this.#options))
  }

  /**
   * Many TLS servers close a connection that does not begin with TLS without an alert, so it probes for TLS.
   */
  async #onClosed(path: string): Promise<void> {
    if (this.#open.has('closed') || this.#open.has('tls')) return
    const code = (await this.#options.probeTls()) ? 'tls' : 'closed'
    this.#add(code, path, responseMessage(code, this.#options))
  }

  #add(code: Code, path: string | undefined, message: string): void {
    if (this.#isClosed || this.#open.has(code)) return
    this.#open.set(code, path)
    this.#options.onProblem(code, message)
  }

  #onSuccess(path: string): void {
    if (this.#open.size === 0) return
    this.#resolve(CONNECTION_PROBLEMS)
    for (const [code, failed] of this.#open) if (failed === path) this.#open.delete(code)
  }

  #resolve(codes: Iterable<Code>): void {
    for (const code of codes) this.#open.delete(code)
  }
}

type Subject = Pick<ProblemLogOptions, 'target' | 'source'>

/** Node's advice about its own command-line flags, which is removed. */
const NODE_ADVICE = /; if the root CA is installed locally.*$/

const httpsTarget = (target: string) => target.replace(/^http:/, 'https:')

function connectMessage(problem: ConnectProblem, { target, source }: Subject, error: string): string {
  switch (problem) {
    case 'unreachable':
      return (
        `The local server at ${target} cannot be reached: ${error}. Start it, or check the target: ` +
        'visitors get 502 until then.'
      )
    case 'certificate':
      return (
        `The certificate of ${target} is not trusted: ${error.replace(NODE_ADVICE, '')}. Trust the certificate of ` +
        `its CA with ${source.advise('ca', '<file>')}, or use ${source.advise('insecure')} to accept any certificate.`
      )
    case 'no_tls':
      return `The local server at ${target} does not speak TLS. Use ${target.replace(/^https:/, 'http:')}.`
  }
}

function responseMessage(problem: Exclude<NoResponseCause, 'no_response'>, subject: Subject): string {
  const { target, source } = subject
  switch (problem) {
    case 'tls':
      return (
        `The local server at ${target} speaks TLS. Use ${httpsTarget(target)}, with ${source.advise('insecure')} ` +
        'if its certificate is self-signed.'
      )
    case 'http2':
      return (
        `The local server at ${target} speaks only HTTP/2. Have it accept HTTP/1.1, too. For gRPC, use ` +
        `${source.advise('type', 'tcp')}.`
      )
    case 'not_http':
      return `The local server at ${target} does not speak HTTP. For other protocols, use ${source.advise('type', 'tcp')}.`
    case 'closed':
      return (
        `The local server at ${target} closed the connection before it had sent a complete response. ` +
        'Look for an error in its output.'
      )
    case 'head_too_large':
      return (
        `A response of ${target} has more than 64 KiB of headers, or more than 1,000 headers, and visitors get ` +
        '502. Look for large or many Set-Cookie headers.'
      )
    case 'response_timeout':
      return `The local server at ${target} did not respond within 2 minutes, and the visitor got 504.`
    case 'invalid_response':
      return (
        `A response of ${target} is not valid HTTP/1.1, and the visitor got 502. Look at its headers with ` +
        '`curl -i`: each line must end with CRLF, and only one header may give the length of the body.'
      )
    default:
      return connectMessage(problem, subject, 'the tunnel client could not connect')
  }
}

const FRAMEWORK_NAMES: Record<Framework, readonly [name: string, setting: string]> = {
  vite: ['Vite', 'server.allowedHosts'],
  next: ['Next', 'allowedDevOrigins'],
  django: ['Django', 'ALLOWED_HOSTS'],
  rails: ['Rails', 'config.hosts'],
  'webpack-dev-server': ['webpack-dev-server', 'allowedHosts'],
  storybook: ['Storybook', 'core.allowedHosts'],
}

function hostMessage(framework: Framework, { target, source }: Subject): string {
  const [name, setting] = FRAMEWORK_NAMES[framework]
  return (
    `${name} at ${target} rejects the host of the tunnel. Start the tunnel with ` +
    `${source.advise('host-header', 'rewrite')}, or add the host to ${setting}.`
  )
}
