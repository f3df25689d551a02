// The history of a run as its clients saw it: each attempt with its start and end on the clock of the test,
// and its response. The checker decides whether it is correct.
import { apis } from '../../../src/contract/apis.ts'
import type { Operation } from '../../../src/contract/operation.ts'
import type { Document } from '../../support/api/openapi.ts'
import type { TestResponse } from '../../support/api/server.ts'

type Surface = 'publicA' | 'edge'

const operations = (['publicA', 'edge'] as const).flatMap((surface) =>
  apis[surface].operations.map((operation: Operation) => ({ surface, operation })),
)

/** The operations that clients call, by their id in the contract. */
export type Kind =
  | 'workspace.read'
  | 'tokens.list'
  | 'tokens.create'
  | 'tokens.revoke'
  | 'usage.read'
  | 'keys.verify'
  | 'requests.authorize'
  | 'usage.report'

export function operationOf(kind: Kind): { surface: Surface; operation: Operation } {
  const found = operations.find(({ operation }) => operation.id === kind)
  if (!found) throw new Error(`The contract has no operation ${kind}.`)
  return found
}

type OperatorKind = 'operator.revoke' | 'operator.create' | 'operator.archive' | 'operator.restore'

export const isByOperator = (kind: Attempt['kind']): kind is OperatorKind => kind.startsWith('operator.')

export interface Attempt {
  /**
   * `operator.revoke` is `adit admin key revoke` in a separate process, `operator.create` the creation of a
   * key that expires, `operator.archive` and `operator.restore` a change of a workspace: acknowledgements,
   * but no HTTP responses.
   */
  kind: Kind | OperatorKind
  node: string
  startMs: number
  endMs: number
  /** The key that the response depends on: it authenticated the request or was verified by it. */
  keyId?: string
  /** When the key that it creates expires, on the clock of the test. */
  expiresMs?: number
  /** The key to revoke. */
  revokes?: string
  /** The workspace to archive or restore. */
  workspace?: string
  idempotencyKey?: string
  /** The client closed the connection early, on purpose. */
  abandoned?: true
  /** Undefined if there was none. */
  response: TestResponse | undefined
}

export interface InjectedFault {
  kind: string
  /** Undefined if it affected all nodes. */
  node: string | undefined
  startMs: number
  endMs: number
}

interface ListedKey {
  id: string
  label: string
  revokedAt: string | null
}

export interface Used {
  bytes: number
  events: number
}

export interface History {
  nodes: string[]
  /** Keys that existed before the run. */
  initialKeyIds: string[]
  /** Keys that existed before in workspaces that are archived and restored, with their workspace. */
  archivable: ReadonlyMap<string, string>
  attempts: Attempt[]
  injected: InjectedFault[]
  /** No faults from then on; every key was verified on every node once more. */
  quiescentMs: number
  /** All keys at the end. The label of a key is the Idempotency-Key of its creation. */
  listed: ListedKey[]
  /** According to the server, and to the edges. */
  usage: { reported: Used; counted: Used }
  /** The OpenAPI documents that the servers serve. */
  documents: Record<Surface, Document>
}

export type Outcome = 'accepted' | 'rejected' | undefined

/**
 * Whether the server accepted the key that an attempt depends on; undefined if the response does not show it.
 */
export function outcomeOf({ kind, response }: Attempt): Outcome {
  if (kind === 'keys.verify')
    return response?.status === 200 ? (response.json.valid ? 'accepted' : 'rejected') : undefined
  if (response?.status === 401) return 'rejected'
  // A 404 comes after authentication.
  return response && (response.status < 300 || response.status === 404) ? 'accepted' : undefined
}

export const isAcknowledged = ({ response }: Attempt): boolean =>
  response?.status === 200 || response?.status === 201

export interface Violation {
  rule:
    | 'stale accept'
    | 'carried after revocation'
    | 'valid key rejected'
    | 'key lost'
    | 'duplicate key'
    | 'wrong usage'
    | 'undocumented response'
    | 'no response'
  what: string
}
