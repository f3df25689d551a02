// The three calls of /edge/v1 that an edge makes, each bounded in time.
import type { Static } from 'typebox'
import type { verifyKey } from '../contract/edge.ts'
import type { reportUsage } from '../contract/reports.ts'
import { type ServerEvent, serverEvents } from './sse-parser.ts'

export type Verdict = Static<(typeof verifyKey)['response']['schema']>
export type Report = Static<(typeof reportUsage)['body']>
export type Receipt = Static<(typeof reportUsage)['response']['schema']>

const ANSWER_WITHIN_MS = 5_000
const REPORT_WITHIN_MS = 15_000

export interface ControlPlane {
  verify(key: string): Promise<Verdict>
  report(report: Report): Promise<Receipt>
  /** The revocations after a number, or from now on; ends when the connection does. */
  keyChanges(after: string | undefined, signal: AbortSignal): Promise<AsyncIterable<ServerEvent>>
}

/** The control plane gave no answer to go by: it cannot be reached, cannot answer, or does not take this edge's word. */
export class ControlPlaneError extends Error {
  override name = 'ControlPlaneError'
  /** The status of the answer, where there was one. */
  readonly status: number | undefined

  constructor(message: string, status?: number, cause?: unknown) {
    super(message, { cause })
    this.status = status
  }
}

export interface ControlPlaneOptions {
  /** Where the control plane is, e.g. `https://adit.example.com`. */
  url: string
  /** The edge's credential, `adit_edge_…`. */
  credential: string
}

export function createControlPlane({ url, credential }: ControlPlaneOptions): ControlPlane {
  const base = URL.parse(url)
  if (!base || !/^https?:$/.test(base.protocol))
    throw new TypeError(`"${url}" is no address of a control plane, such as https://adit.example.com.`)
  if (!/^[\x21-\x7e]+$/.test(credential))
    throw new TypeError('The credential of an edge is text such as adit_edge_…, without spaces.')
  const root = `${base.href.replace(/\/$/, '')}/edge/v1`
  const authorization = `Bearer ${credential}`

  async function send(path: string, init: RequestInit): Promise<Response> {
    let response: Response
    try {
      response = await fetch(root + path, {
        ...init,
        redirect: 'error',
        headers: { authorization, ...(init.headers as Record<string, string>) },
      })
    } catch (error) {
      throw new ControlPlaneError(`${base?.origin} cannot be reached: ${reasonOf(error)}.`, undefined, error)
    }
    if (response.ok) return response
    throw new ControlPlaneError(await complaintOf(response), response.status)
  }

  async function post<T>(
    path: string,
    body: unknown,
    withinMs: number,
    isAnswer: (given: unknown) => given is T,
  ): Promise<T> {
    const response = await send(path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
      signal: AbortSignal.timeout(withinMs),
    })
    let answer: unknown
    try {
      answer = await response.json()
    } catch (error) {
      throw new ControlPlaneError(
        `The answer of ${base?.origin} cannot be read: ${reasonOf(error)}.`,
        200,
        error,
      )
    }
    if (isAnswer(answer)) return answer
    throw new ControlPlaneError(
      `${base?.origin} gave an answer that no control plane gives.`,
      response.status,
    )
  }

  return {
    verify: (key) => post('/keys/verify', { key }, ANSWER_WITHIN_MS, isVerdict),
    report: (report) => post('/usage', report, REPORT_WITHIN_MS, isReceipt),
    async keyChanges(after, signal) {
      const headers: Record<string, string> = after === undefined ? {} : { 'last-event-id': after }
      const response = await send('/key-changes', { headers, signal })
      return serverEvents(response.body as AsyncIterable<Uint8Array>)
    },
  }
}

/** What the control plane says is wrong, in its own words where it has some. */
async function complaintOf(response: Response): Promise<string> {
  const said = (await response.json().catch(() => undefined)) as Said | null | undefined
  const details = Array.isArray(said?.details) ? said.details : []
  const words = details.map((detail) => `${detail?.path} ${detail?.message}`).join('; ')
  return `The control plane answered ${response.status}: ${said?.message || words || response.statusText}`
}

interface Said {
  message?: string
  details?: ({ path?: string; message?: string } | null)[]
}

/** What is acted upon is checked; whatever else may come with a later version. */
function isVerdict(given: unknown): given is Verdict {
  const { valid, keyId, workspace } = (given ?? {}) as {
    valid?: unknown
    keyId?: unknown
    workspace?: unknown
  }
  if (valid === false) return true
  const { slug } = (workspace ?? {}) as { slug?: unknown }
  return valid === true && typeof keyId === 'string' && typeof slug === 'string'
}

const isReceipt = (given: unknown): given is Receipt =>
  Array.isArray((given as Partial<Receipt> | null)?.refused)

/** The cause of a failed fetch lies one step down, and may be several attempts that have a code and no words. */
function reasonOf(error: unknown): string {
  const { cause = error } = error as { cause?: unknown }
  const { message, code } = cause as { message?: string; code?: string }
  return (message || code || String(cause)).replace(/\.$/, '')
}
