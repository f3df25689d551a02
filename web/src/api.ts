// Client of the dashboard API, typed by its contract.
import { type Count, parseExact, type Received } from '../../src/client/exact-json.ts'
import { buildRequest } from '../../src/client/request.ts'
import type { InputOf, OutputOf } from '../../src/contract/operation.ts'
import { ApiError } from './api-error.ts'
import { type DashboardOperation, routes } from './api-routes.ts'
import { apiRoot } from './paths.ts'

type OperationId = DashboardOperation['id']
type Of<Id extends OperationId> = Extract<DashboardOperation, { id: Id }>

export type { Count }
export type Input<Id extends OperationId> = InputOf<Of<Id>>
export type Output<Id extends OperationId> = Received<OutputOf<Of<Id>>>

/** Long enough for a slow network, short enough to report a failure while the user still waits. */
const TIMEOUT_MS = 30_000

export async function call<Id extends OperationId>(
  id: Id,
  ...[input]: unknown extends Input<Id> ? [] : [input: Input<Id>]
): Promise<Output<Id>> {
  const { method, path, body } = buildRequest(routes[id], input as object | undefined)
  let response: Response
  let text: string
  try {
    response = await fetch(apiRoot + path, {
      method,
      credentials: 'same-origin',
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(body && { body, headers: { 'content-type': 'application/json' } }),
    })
    text = await response.text()
  } catch {
    throw ApiError.unreachable()
  }
  const json = parseExact(text)
  // Not JSON: the response of a proxy whose upstream is down.
  if (json === undefined) throw response.ok ? ApiError.unreachable() : ApiError.of(response, {})
  if (!response.ok) throw ApiError.of(response, json)
  return json as Output<Id>
}
