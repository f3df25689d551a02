// The requests of the clients. Each is recorded in the history.
import { setTimeout as sleep } from 'node:timers/promises'
import { apis } from '../../../src/contract/apis.ts'
import { caller, type TestResponse } from '../../support/api/server.ts'
import { type Attempt, type Kind, operationOf } from '../checker/history.ts'
import type { Node } from '../nodes.ts'

/** Longer than every timeout of the server and every fault: a request that takes longer was dropped. */
const TIMEOUT_MS = 25_000

export interface Key {
  id: string
  token: string
}

export interface Edge {
  token: string
}

type CallInput = Pick<Attempt, 'keyId' | 'revokes' | 'idempotencyKey'> & {
  token: string
  id?: string
  query?: string
  body?: unknown
  headers?: Record<string, string>
  /** Abandons the request after this time, on purpose. */
  timeoutMs?: number | undefined
}

export type Calls = ReturnType<typeof createCalls>

export function createCalls(attempts: Attempt[], edge: Edge) {
  async function call(node: Node, kind: Kind, input: CallInput): Promise<TestResponse | undefined> {
    const { token, id = '', query = '', body, headers = {}, timeoutMs, ...recorded } = input
    const { surface, operation } = operationOf(kind)
    const base = node.url + apis[surface].prefix
    // Not AbortSignal.timeout: only the request references it, weakly, so it can be collected before it
    // fires.
    const timeout = new AbortController()
    const timer = setTimeout(() => timeout.abort(), timeoutMs ?? TIMEOUT_MS)
    const startMs = performance.now()
    const response = await caller(base, token)(operation.method, operation.path.replace('{id}', id) + query, {
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: timeout.signal,
    }).catch(ignoreNetworkError)
    clearTimeout(timer)
    const abandoned = timeoutMs !== undefined && { abandoned: true as const }
    attempts.push({
      kind,
      node: node.name,
      startMs,
      endMs: performance.now(),
      ...recorded,
      ...abandoned,
      response,
    })
    // A dead process refuses connections immediately: do not retry in a busy loop.
    if (!response) await sleep(20)
    return response
  }

  /** The requests that show whether a key is accepted. */
  const probes = {
    verify: (node: Node, { id, token }: Key) =>
      call(node, 'keys.verify', { keyId: id, token: edge.token, body: { key: token } }),
    authorize: (node: Node, { id, token }: Key) =>
      call(node, 'requests.authorize', { keyId: id, token, headers: { 'x-adit-edge': edge.token } }),
    read: (node: Node, { id, token }: Key) => call(node, 'workspace.read', { keyId: id, token }),
    list: (node: Node, { id, token }: Key) =>
      call(node, 'tokens.list', { keyId: id, token, query: '?limit=5' }),
  }

  return {
    probes,
    create: (node: Node, by: Key, idempotencyKey: string, timeoutMs?: number) =>
      call(node, 'tokens.create', {
        keyId: by.id,
        token: by.token,
        idempotencyKey,
        body: { label: idempotencyKey },
        headers: { 'idempotency-key': idempotencyKey },
        timeoutMs,
      }),
    revoke: (node: Node, by: Key, id: string, timeoutMs?: number) =>
      call(node, 'tokens.revoke', { keyId: by.id, token: by.token, revokes: id, id, timeoutMs }),
    listAll: (node: Node, by: Key) => call(node, 'tokens.list', { keyId: by.id, token: by.token }),
    readUsage: (node: Node, by: Key) =>
      call(node, 'usage.read', { keyId: by.id, token: by.token, query: '?days=2' }),
    report: (node: Node, by: Edge, body: object, timeoutMs?: number) =>
      call(node, 'usage.report', { token: by.token, body, timeoutMs }),
  }
}

/** Retries while there is no response, or 503. */
export async function retryUntilResponse(
  attempt: () => Promise<TestResponse | undefined>,
): Promise<TestResponse> {
  const startedAt = performance.now()
  for (;;) {
    const response = await attempt()
    if (response && response.status !== 503) return response
    if (performance.now() - startedAt > TIMEOUT_MS) throw new Error('no response although no fault is active')
    await sleep(50)
  }
}

/** Network errors and aborts count as no response; anything else is a bug of the test. */
function ignoreNetworkError(error: Error): undefined {
  const isNetwork = error instanceof TypeError && /fetch failed|terminated/.test(error.message)
  if (!isNetwork && error.name !== 'AbortError') throw error
}
