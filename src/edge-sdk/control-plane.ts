// HTTP client for the /edge/v1 operations that an edge calls, each with a timeout.
import type { apis } from '../contract/apis.ts'
import { hashSecret } from '../lib/credentials/secret.ts'
import { readText } from '../lib/net/response-text.ts'
import { messageLine } from '../lib/net/untrusted-text.ts'
import { errorMessage } from '../lib/startup-error.ts'
import type {
  ClaimResult,
  HostResult,
  Receipt,
  Report,
  SyncResult,
  TunnelClaim,
  TunnelSync,
  VerifyResult,
} from './api.ts'
import { type ServerEvent, serverEvents } from './sse-parser.ts'

const PREFIX: typeof apis.edge.prefix = '/edge/v1'
const VERIFY_TIMEOUT_MS = 5_000
const REPORT_TIMEOUT_MS = 15_000
const FIND_HOST_TIMEOUT_MS = 5_000
const CLAIM_TIMEOUT_MS = 10_000
const SYNC_TIMEOUT_MS = 10_000
/** Larger than the receipt of a report of maximum size whose items are all rejected. */
const RESPONSE_BYTES_MAX = 16 * 1024 * 1024
const ERROR_BYTES_MAX = 64 * 1024

export interface ControlPlane {
  /** Identifies the credential without revealing it: the first 16 hex digits of its SHA-256. */
  readonly credentialFingerprint: string
  /**
   * Verifies a key. The result of a valid key has a grant to open tunnels. It takes all changes up to the
   * event id `after` into account.
   */
  verify(key: string, after?: string): Promise<VerifyResult>
  report(report: Report): Promise<Receipt>
  /** Whether a host name is a tunnel domain, or has a name that a workspace has reserved or used lately. */
  findHost(host: string): Promise<HostResult>
  /** Claims the names of tunnels that are about to be opened. The results are in the order of the tunnels. */
  claimTunnels(claim: TunnelClaim): Promise<ClaimResult[]>
  syncTunnels(sync: TunnelSync): Promise<SyncResult>
  /**
   * Streams revocations after an event id, or from now on. With `locations`, a position or `none`, also peers
   * and locations of the edge's group. The stream ends with the connection.
   */
  keyChanges(
    after: string | undefined,
    signal: AbortSignal,
    locations?: string,
  ): Promise<AsyncIterable<ServerEvent>>
}

/** The control plane is unreachable, failed, or rejected this edge's credential. */
export class ControlPlaneError extends Error {
  override name = 'ControlPlaneError'
  /** HTTP status of the response, or 429 if this edge has too many calls in progress; otherwise undefined. */
  readonly status: number | undefined
  /** Seconds to wait before retrying, if the response says so. */
  readonly retryAfterS: number | undefined

  constructor(message: string, status?: number, cause?: unknown, retryAfterS?: number) {
    super(message, { cause })
    this.status = status
    this.retryAfterS = retryAfterS
  }
}

interface ControlPlaneOptions {
  /** Base URL of the control plane, e.g. `https://adit.example.com`. */
  url: string
  /** The edge's credential, `adit_edge_…`. */
  credential: string
  /** Sends requests, instead of the global fetch: through a proxy, for example. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>
}

export function createControlPlane(options: ControlPlaneOptions): ControlPlane {
  const { url, credential, fetch: sendRequest = fetch } = options
  const base = URL.parse(url)
  if (!base || !/^https?:$/.test(base.protocol))
    throw new TypeError(
      `Invalid control plane URL "${url}" (expected, for example, https://adit.example.com)`,
    )
  if (!/^[\x21-\x7e]+$/.test(credential))
    throw new TypeError('Invalid edge credential (expected adit_edge_… without spaces)')
  const root = `${base.href.replace(/\/$/, '')}${PREFIX}`
  const authorization = `Bearer ${credential}`

  async function send(path: string, init: RequestInit): Promise<Response> {
    let response: Response
    try {
      response = await sendRequest(root + path, {
        ...init,
        redirect: 'error',
        headers: { authorization, ...(init.headers as Record<string, string>) },
      })
    } catch (error) {
      throw new ControlPlaneError(
        `${base?.origin} cannot be reached: ${describeError(error)}.`,
        undefined,
        error,
      )
    }
    if (response.ok) return response
    const message = await responseMessage(response)
    throw new ControlPlaneError(message, response.status, undefined, parseRetryAfter(response))
  }

  async function post<T>(
    path: string,
    body: unknown,
    timeoutMs: number,
    isExpected: (value: unknown) => value is T,
  ): Promise<T> {
    const response = await send(path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
      signal: AbortSignal.timeout(timeoutMs),
    })
    let value: unknown
    try {
      value = JSON.parse(await readText(response, RESPONSE_BYTES_MAX))
    } catch (error) {
      const message = `${base?.origin} sent a response that cannot be read: ${describeError(error)}.`
      throw new ControlPlaneError(message, response.status, error)
    }
    if (isExpected(value)) return value
    const message = `${base?.origin} sent an unexpected response. Check the control plane URL.`
    throw new ControlPlaneError(message, response.status)
  }

  return {
    credentialFingerprint: hashSecret(credential).slice(0, 16),
    verify: (key, after) =>
      post('/keys/verify', { key, grant: true, after }, VERIFY_TIMEOUT_MS, isVerifyResult),
    findHost: (host) => post('/hosts/find', { host }, FIND_HOST_TIMEOUT_MS, isHostResult),
    report: (report) => post('/usage', report, REPORT_TIMEOUT_MS, isReceipt),
    async claimTunnels(claim) {
      const { length } = claim.tunnels
      const { results } = await post('/tunnels/claim', claim, CLAIM_TIMEOUT_MS, areClaimResults(length))
      return results
    },
    syncTunnels: (sync) => post('/tunnels/sync', sync, SYNC_TIMEOUT_MS, isSyncResult),
    async keyChanges(after, signal, locations) {
      const headers: Record<string, string> = after === undefined ? {} : { 'last-event-id': after }
      const query = locations === undefined ? '' : `?locations=${encodeURIComponent(locations)}`
      const response = await send(`/key-changes${query}`, { headers, signal })
      return serverEvents(response.body as AsyncIterable<Uint8Array>)
    },
  }
}

/** Reads only the form with seconds: Adit does not send dates. */
function parseRetryAfter({ headers }: Response): number | undefined {
  const value = headers.get('retry-after')
  return value !== null && /^\d{1,9}$/.test(value) ? Number(value) : undefined
}

async function responseMessage(response: Response): Promise<string> {
  const body = (await readText(response, ERROR_BYTES_MAX)
    .then((text) => JSON.parse(text))
    .catch(() => undefined)) as { message?: unknown; details?: unknown } | null | undefined
  const list = Array.isArray(body?.details) ? body.details : []
  const details = list.filter(isDetail).map(({ path, message }) => `${path} ${message}`)
  const message = typeof body?.message === 'string' ? body.message : ''
  const reason = message || details.join('; ') || response.statusText
  return `The control plane responded with ${response.status}: ${messageLine(reason)}`
}

const isDetail = (value: unknown): value is { path: string; message: string } => {
  const { path, message } = (value ?? {}) as Record<string, unknown>
  return typeof path === 'string' && typeof message === 'string'
}

/** Checks the fields that the SDK acts on; later versions may add others. */
function isVerifyResult(value: unknown): value is VerifyResult {
  const { valid, keyId, workspace } = (value ?? {}) as Record<string, unknown>
  if (valid === false) return true
  const { slug } = (workspace ?? {}) as { slug?: unknown }
  return valid === true && typeof keyId === 'string' && typeof slug === 'string'
}

function isHostResult(value: unknown): value is HostResult {
  const { found, workspace } = (value ?? {}) as Record<string, unknown>
  return found === false || (found === true && (workspace === null || typeof workspace === 'string'))
}

const isReceipt = (value: unknown): value is Receipt =>
  Array.isArray((value as Partial<Receipt> | null)?.rejected)

const areClaimResults =
  (length: number) =>
  (value: unknown): value is { results: ClaimResult[] } => {
    const { results } = (value ?? {}) as { results?: (Partial<ClaimResult> | null)[] }
    return (
      Array.isArray(results) &&
      results.length === length &&
      results.every((result) => typeof result?.granted === 'boolean')
    )
  }

function isSyncResult(value: unknown): value is SyncResult {
  const { close, grantRequired, names, lease } = (value ?? {}) as Partial<SyncResult>
  return [close, grantRequired, names].every(Array.isArray) && isLease(lease)
}

const isLease = (lease: SyncResult['lease'] | undefined): boolean =>
  lease === null ||
  (typeof lease?.after === 'string' && (lease.seconds === null || Number.isFinite(lease.seconds)))

/** fetch wraps the actual error in `cause`. */
function describeError(error: unknown): string {
  const { cause = error } = error as { cause?: unknown }
  return messageLine(errorMessage(cause)).replace(/\.$/, '')
}
