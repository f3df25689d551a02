// The one way to the dashboard's API, typed by its contract.
import type { AnswerOf, InputOf } from '../../src/contract/operation.ts'
import { apiRoot } from './address.ts'
import { ApiError } from './api-error.ts'
import { type DashboardOperation, routes } from './routes-of-api.ts'

type OperationId = DashboardOperation['id']
type Of<Id extends OperationId> = Extract<DashboardOperation, { id: Id }>

/** Counts are bigint in the contract; here they are so only where a number would not be exact. */
export type Count = number | bigint
type Received<T> = T extends bigint
  ? Count
  : T extends readonly (infer E)[]
    ? Received<E>[]
    : T extends object
      ? { [K in keyof T]: Received<T[K]> }
      : T

export type Input<Id extends OperationId> = InputOf<Of<Id>>
export type Answer<Id extends OperationId> = Received<AnswerOf<Of<Id>>>

/** Long enough for a slow network, short enough to say that nothing comes. */
const PATIENCE_MS = 30_000

export async function call<Id extends OperationId>(
  id: Id,
  ...[input]: unknown extends Input<Id> ? [] : [input: Input<Id>]
): Promise<Answer<Id>> {
  const { method, url, body } = requestOf(routes[id], { ...(input as Record<string, unknown> | undefined) })
  let response: Response
  let text: string
  try {
    response = await fetch(url, {
      method,
      credentials: 'same-origin',
      signal: AbortSignal.timeout(PATIENCE_MS),
      ...(body && { body, headers: { 'content-type': 'application/json' } }),
    })
    text = await response.text()
  } catch {
    throw ApiError.unreachable()
  }
  const answer = parse(text)
  // A proxy in front of a server that is down answers too, but not in our words.
  if (answer === undefined) throw response.ok ? ApiError.unreachable() : ApiError.of(response, {})
  if (!response.ok) throw ApiError.of(response, answer)
  return answer as Answer<Id>
}

/** Parameters go into the path; the rest into the query, or into the body of a POST. */
function requestOf(route: string, fields: Record<string, unknown>) {
  const [method = '', path = ''] = route.split(' ')
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = encodeURIComponent(String(fields[name]))
    delete fields[name]
    return value
  })
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  if (method === 'POST')
    return {
      method,
      url: apiRoot + filled,
      body: given.length > 0 ? JSON.stringify(Object.fromEntries(given)) : undefined,
    }
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)]))
  return { method, url: `${apiRoot}${filled}${query.size > 0 ? `?${query}` : ''}`, body: undefined }
}

function parse(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text, exact)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** Browsers that do not give the source of a number yet show it rounded, as they always did. */
function exact(_key: string, value: unknown, context?: { source?: string }): unknown {
  const isRounded = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
  return isRounded && context?.source && /^-?\d+$/.test(context.source) ? BigInt(context.source) : value
}
