// Checks that every response is declared by the contract, matches its schema and is possible for a valid
// request.
import { type FaultCode, faults } from '../../../src/contract/faults.ts'
import { createResponseValidator } from '../../support/api/openapi.ts'
import { type Attempt, type History, isByOperator, operationOf, type Violation } from './history.ts'

/** Documented errors that the clients' requests must not cause, and `internal`, which is always a bug. */
const UNEXPECTED: FaultCode[] = ['invalid_request', 'idempotency_mismatch', 'rate_limited', 'internal']

/** Faults that lose requests: the node is killed, or paused for longer than connections last. */
const LOSES_REQUESTS = ['worker killed', 'kill', 'pause', 'link stalled and node paused']

export function invalidResponses({ attempts, documents, injected }: History): Violation[] {
  const validators = {
    publicA: createResponseValidator(documents.publicA),
    edge: createResponseValidator(documents.edge),
  }

  /** The violation, if any. */
  function findProblem({ kind, response }: Attempt): string | undefined {
    if (!response || isByOperator(kind)) return undefined
    const { surface, operation } = operationOf(kind)
    const summary = `${response.status} ${response.text.slice(0, 300)}`
    if (UNEXPECTED.some((code) => faults[code].status === response.status)) return summary
    // Edge credentials are valid throughout. For `requests.authorize` 401 is about the key.
    if (surface === 'edge' && kind !== 'requests.authorize' && response.status === 401) return summary
    try {
      validators[surface](operation.path, operation.method, response)
    } catch (error) {
      return (error as Error).message
    }
  }

  const isExcused = ({ node, startMs, endMs, abandoned }: Attempt) =>
    abandoned ||
    injected.some(
      (fault) =>
        LOSES_REQUESTS.includes(fault.kind) &&
        fault.node === node &&
        fault.startMs <= endMs &&
        fault.endMs >= startMs,
    )

  return attempts.flatMap((attempt): Violation[] => {
    const { kind, node, startMs, endMs } = attempt
    const problem = findProblem(attempt)
    if (problem !== undefined)
      return [{ rule: 'undocumented response', what: `${kind} on ${node}: ${problem}` }]
    if (attempt.response || isByOperator(kind) || isExcused(attempt)) return []
    return [{ rule: 'no response', what: `${kind} on ${node} within ${Math.round(endMs - startMs)} ms` }]
  })
}
