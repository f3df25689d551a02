// Requests to the local API.
import type { ApiError } from '../../../src/inspector/api.ts'
import { getAccess, loseAccess, readBearer } from './access.ts'

export class InspectorError extends Error {
  override readonly name = 'InspectorError'
  readonly code: ApiError['error'] | 'unreachable'

  constructor(code: InspectorError['code'], message: string) {
    super(message)
    this.code = code
  }
}

interface CallOptions {
  method?: 'GET' | 'POST' | 'DELETE'
  query?: object
  body?: object
  signal?: AbortSignal
}

/** Throws InspectorError. */
export async function send(path: string, options: CallOptions = {}): Promise<Response> {
  const { method = 'GET', query = {}, body, signal } = options
  if (getAccess() === 'ended') throw new InspectorError('unreachable', 'The tunnel client has ended.')
  const params = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) =>
      value === undefined || value === '' ? [] : [[name, String(value)]],
    ),
  )
  const headers: Record<string, string> = { authorization: `Bearer ${readBearer()}` }
  if (body) headers['content-type'] = 'application/json'
  const response = await fetch(params.size === 0 ? path : `${path}?${params}`, {
    method,
    headers,
    cache: 'no-store',
    ...(body && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  }).catch((error: Error) => {
    if (signal?.aborted) throw error
    throw new InspectorError('unreachable', 'Cannot reach the tunnel client. Is it still running?')
  })
  if (response.ok) return response
  if (response.status === 401) loseAccess()
  const { error = 'internal', message } = (await response.json().catch(() => ({}))) as Partial<ApiError>
  throw new InspectorError(error, message ?? `The tunnel client responded with status ${response.status}.`)
}

export const call = async <T>(path: string, options?: CallOptions): Promise<T> =>
  (await send(path, options)).json() as Promise<T>
