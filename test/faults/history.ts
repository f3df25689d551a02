// What happened, as the clients saw it: each attempt with when it began and ended on the clock of the test, and what was
// answered. Whether it was right is for the checker to say.
import { edgeOperations } from '../../src/contract/edge.ts'
import type { Operation } from '../../src/contract/operation.ts'
import { variants } from '../../src/contract/variants.ts'
import type { Document } from '../support/openapi.ts'
import type { Answer } from '../support/server.ts'

export type Surface = 'public' | 'edge'

const described = [
  ...variants.A.map((operation: Operation) => ({ surface: 'public' as Surface, operation })),
  ...edgeOperations.map((operation: Operation) => ({ surface: 'edge' as Surface, operation })),
]

/** The operations that clients call, by what the contract calls them. */
export type Kind =
  | 'workspace.read'
  | 'tokens.list'
  | 'tokens.create'
  | 'tokens.revoke'
  | 'usage.read'
  | 'keys.verify'
  | 'visitors.authorize'
  | 'usage.report'

export function operationOf(kind: Kind): { surface: Surface; operation: Operation } {
  const found = described.find(({ operation }) => operation.id === kind)
  if (!found) throw new Error(`The contract knows no ${kind}.`)
  return found
}

export interface Attempt {
  /** `operator.revoke` is `adit admin key revoke`, a process of its own: no answer of HTTP, but an acknowledgement. */
  kind: Kind | 'operator.revoke'
  node: string
  startMs: number
  endMs: number
  /** The key on which the answer depends: it came with the call, or the question is about it. */
  keyId?: string
  /** The key that is to be revoked. */
  revokes?: string
  idempotencyKey?: string
  /** The client did not wait for the answer, on purpose. */
  impatient?: true
  /** Undefined where no answer came. */
  answer: Answer | undefined
}

/** Something that was done to a node or to the database. */
export interface Trouble {
  kind: string
  /** Undefined where it was done to all. */
  node: string | undefined
  startMs: number
  endMs: number
}

export interface ListedKey {
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
  /** Of the keys that were there before. */
  initialKeyIds: string[]
  attempts: Attempt[]
  troubles: Trouble[]
  /** From then on nothing was done to anybody, and every key was asked about on every node once more. */
  quietMs: number
  /** All keys at the end. A key is labelled with the Idempotency-Key of its creation. */
  listed: ListedKey[]
  /** What the server says was used, and what the edges counted. */
  usage: { told: Used; counted: Used }
  /** What the servers themselves say that they answer with. */
  documents: Record<Surface, Document>
}

export type Verdict = 'accepted' | 'refused' | undefined

/** Whether the key that an attempt depends on was taken for a good one; undefined where that was not said. */
export function verdictOf({ kind, answer }: Attempt): Verdict {
  if (kind === 'keys.verify')
    return answer?.status === 200 ? (answer.json.valid ? 'accepted' : 'refused') : undefined
  if (answer?.status === 401) return 'refused'
  // Whoever is told that something is not there was let in to ask.
  return answer && (answer.status < 300 || answer.status === 404) ? 'accepted' : undefined
}

export const isAcknowledged = ({ answer }: Attempt): boolean =>
  answer?.status === 200 || answer?.status === 201

/** A promise that was not kept. */
export interface Violation {
  rule:
    | 'stale accept'
    | 'good key refused'
    | 'key lost'
    | 'key doubled'
    | 'usage wrong'
    | 'answer not documented'
    | 'no answer'
  what: string
}
