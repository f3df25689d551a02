// The calls that clients make, each written down.
import { setTimeout as sleep } from 'node:timers/promises'
import { EDGE_PREFIX } from '../../src/contract/edge.ts'
import { PUBLIC_PREFIX } from '../../src/contract/variants.ts'
import { type Answer, caller } from '../support/server.ts'
import { type Attempt, type Kind, operationOf } from './history.ts'
import type { Node } from './nodes.ts'

/** Beyond all bounds of the server and all that is done to it: whoever waits longer was forgotten. */
const PATIENCE_MS = 25_000

export interface Key {
  id: string
  token: string
}

export interface Edge {
  token: string
}

type Given = Pick<Attempt, 'keyId' | 'revokes' | 'idempotencyKey'> & {
  token: string
  id?: string
  query?: string
  body?: unknown
  headers?: Record<string, string>
  /** Gives up after that time, on purpose. */
  patienceMs?: number | undefined
}

export type Calls = ReturnType<typeof createCalls>

export function createCalls(attempts: Attempt[], edge: Edge) {
  async function call(node: Node, kind: Kind, given: Given): Promise<Answer | undefined> {
    const { token, id = '', query = '', body, headers = {}, patienceMs, ...noted } = given
    const { surface, operation } = operationOf(kind)
    const base = node.url + (surface === 'public' ? PUBLIC_PREFIX : EDGE_PREFIX)
    // Not AbortSignal.timeout: nothing but the request would hold it, and that holds it too loosely for it to go off.
    const patience = new AbortController()
    const timer = setTimeout(() => patience.abort(), patienceMs ?? PATIENCE_MS)
    const startMs = performance.now()
    const answer = await caller(base, token)(operation.method, operation.path.replace('{id}', id) + query, {
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: patience.signal,
    }).catch(unlessNetwork)
    clearTimeout(timer)
    const impatient = patienceMs !== undefined && { impatient: true as const }
    attempts.push({
      kind,
      node: node.name,
      startMs,
      endMs: performance.now(),
      ...noted,
      ...impatient,
      answer,
    })
    // A process that is not there refuses in no time.
    if (!answer) await sleep(20)
    return answer
  }

  /** The ways in which a key is put to the test. */
  const probes = {
    verify: (node: Node, { id, token }: Key) =>
      call(node, 'keys.verify', { keyId: id, token: edge.token, body: { key: token } }),
    authorize: (node: Node, { id, token }: Key) =>
      call(node, 'visitors.authorize', { keyId: id, token, headers: { 'x-adit-edge': edge.token } }),
    read: (node: Node, { id, token }: Key) => call(node, 'workspace.read', { keyId: id, token }),
    list: (node: Node, { id, token }: Key) =>
      call(node, 'tokens.list', { keyId: id, token, query: '?limit=5' }),
  }

  return {
    probes,
    create: (node: Node, by: Key, idempotencyKey: string, patienceMs?: number) =>
      call(node, 'tokens.create', {
        keyId: by.id,
        token: by.token,
        idempotencyKey,
        body: { label: idempotencyKey },
        headers: { 'idempotency-key': idempotencyKey },
        patienceMs,
      }),
    revoke: (node: Node, by: Key, id: string, patienceMs?: number) =>
      call(node, 'tokens.revoke', { keyId: by.id, token: by.token, revokes: id, id, patienceMs }),
    listAll: (node: Node, by: Key) => call(node, 'tokens.list', { keyId: by.id, token: by.token }),
    readUsage: (node: Node, by: Key) =>
      call(node, 'usage.read', { keyId: by.id, token: by.token, query: '?days=2' }),
    report: (node: Node, by: Edge, body: object, patienceMs?: number) =>
      call(node, 'usage.report', { token: by.token, body, patienceMs }),
  }
}

/** Repeats what was not answered, or with 503, as long as somebody might still wait for it. */
export async function insist(attempt: () => Promise<Answer | undefined>): Promise<Answer> {
  const began = performance.now()
  for (;;) {
    const answer = await attempt()
    if (answer && answer.status !== 503) return answer
    if (performance.now() - began > PATIENCE_MS) throw new Error('There is no answer although all is well.')
    await sleep(50)
  }
}

/** Refused, reset, cut off or given up: no answer. Anything else is a mistake of ours. */
function unlessNetwork(error: Error): undefined {
  const isNetwork = error instanceof TypeError && /fetch failed|terminated/.test(error.message)
  if (!isNetwork && error.name !== 'AbortError') throw error
}
