// Was every answer one that the contract declares, in the form it declares, and one that a sound request can get?
import { type FaultCode, faults } from '../../src/contract/faults.ts'
import { createJudge } from '../support/openapi.ts'
import { type Attempt, type History, operationOf, type Violation } from './history.ts'

/** Documented, but our clients send nothing that would deserve them; and the server has no excuse for the last one. */
const UNDESERVED: FaultCode[] = ['invalid_request', 'idempotency_mismatch', 'rate_limited', 'internal']

/** Whoever is killed, or stands still for so long that connections end meanwhile, owes nobody an answer. */
const OWES_NOTHING = ['kill', 'freeze', 'wire held and node frozen']

export function wrongAnswers({ attempts, documents, troubles }: History): Violation[] {
  const judges = { public: createJudge(documents.public), edge: createJudge(documents.edge) }

  /** Why the answer will not do; undefined where it will. */
  function complaint({ kind, answer }: Attempt): string | undefined {
    if (!answer || kind === 'operator.revoke') return undefined
    const { surface, operation } = operationOf(kind)
    const said = `${answer.status} ${answer.text.slice(0, 300)}`
    if (UNDESERVED.some((code) => faults[code].status === answer.status)) return said
    // The edges' own credentials are good throughout; of a visitor's key it is the one word there is.
    if (surface === 'edge' && kind !== 'visitors.authorize' && answer.status === 401) return said
    try {
      judges[surface](operation.path, operation.method, answer)
    } catch (error) {
      return (error as Error).message
    }
  }

  const isExcused = ({ node, startMs, endMs, impatient }: Attempt) =>
    impatient ||
    troubles.some(
      (trouble) =>
        OWES_NOTHING.includes(trouble.kind) &&
        trouble.node === node &&
        trouble.startMs <= endMs &&
        trouble.endMs >= startMs,
    )

  return attempts.flatMap((attempt): Violation[] => {
    const { kind, node, startMs, endMs } = attempt
    const wrong = complaint(attempt)
    if (wrong !== undefined) return [{ rule: 'answer not documented', what: `${kind} on ${node}: ${wrong}` }]
    if (attempt.answer || kind === 'operator.revoke' || isExcused(attempt)) return []
    return [{ rule: 'no answer', what: `${kind} on ${node} within ${Math.round(endMs - startMs)} ms` }]
  })
}
