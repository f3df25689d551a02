// Client of the dashboard API, typed by its contract.
import { type Count, parseExact, type Received } from '../../src/client/exact-json.ts'
import { buildRequest } from '../../src/client/request.ts'
import type { InputOf, OutputOf } from '../../src/contract/operation.ts'
import { ApiError } from './api-error.ts'
import { type DashboardOperation, routes } from './api-routes.ts'
import { apiRoot } from './paths.ts'

type OperationId = DashboardOperation['id']
type OperationById<Id extends OperationId> = Extract<DashboardOperation, { id: Id }>

export type { Count }
export type Input<Id extends OperationId> = InputOf<OperationById<Id>>
export type Output<Id extends OperationId> = Received<OutputOf<OperationById<Id>>>

/** Long enough for a slow network, short enough to report a failure while the user still waits. */
const TIMEOUT_MS = 30_000

/** A file of any length takes as long as the server allows. */
const FILE_TIMEOUT_MS = 120_000

export async function call<Id extends OperationId>(
  id: Id,
  ...[input]: unknown extends Input<Id> ? [] : [input: Input<Id>]
): Promise<Output<Id>> {
  const { response, content } = await send(id, input, TIMEOUT_MS, (received) => received.text())
  const json = parseExact(content)
  // A proxy whose upstream is down responds without JSON.
  if (json === undefined) throw response.ok ? ApiError.unreachable() : ApiError.fromResponse(response, {})
  if (!response.ok) throw ApiError.fromResponse(response, json)
  return json as Output<Id>
}

export async function callForFile<Id extends OperationId>(id: Id, input: Input<Id>): Promise<Blob> {
  const { response, content } = await send(id, input, FILE_TIMEOUT_MS, (received) => received.blob())
  if (!response.ok) throw ApiError.fromResponse(response, parseExact(await content.text()) ?? {})
  return content
}

async function send<T>(
  id: OperationId,
  input: unknown,
  timeoutMs: number,
  read: (response: Response) => Promise<T>,
): Promise<{ response: Response; content: T }> {
  const { method, path, body } = buildRequest(routes[id], input as object | undefined)
  try {
    const response = await fetch(apiRoot + path, {
      method,
      credentials: 'same-origin',
      signal: AbortSignal.timeout(timeoutMs),
      ...(body && { body, headers: { 'content-type': 'application/json' } }),
    })
    return { response, content: await read(response) }
  } catch {
    throw ApiError.unreachable()
  }
}
