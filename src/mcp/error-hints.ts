// What an agent can do about a call that failed: told beside what went wrong.
import type { AditError, Fault } from '../client/index.ts'
import type { AgentTool } from './tools.ts'

type Advise = (error: AditError, tool: AgentTool) => string

/** Without an answer, only a read is sure to have changed nothing. */
const afterNoAnswer: Advise = (_error, { operation }) =>
  operation.method === 'GET'
    ? 'Try again in a moment; if it stays like that, ask the user whether the server is running and its address is right.'
    : 'It may have been done all the same: look with list_api_keys before you try again.'

const advice: { [Code in Fault['error']]: Advise } = {
  invalid_request: () => 'Mend the arguments and call again.',
  unauthorized: () =>
    'The key that you act with is not good, or is no more. Ask the user for another one; trying again does not help.',
  forbidden: () => 'This is not yours to do. Tell the user.',
  not_found: (_error, { operation }) =>
    operation.id === 'tokens.revoke'
      ? 'No active key of this workspace has that id: it does not exist, or is revoked already. list_api_keys shows them all.'
      : 'The server does not offer this. Tell the user that the server may run another version of the API.',
  conflict: () => 'Look at how things stand, then decide again.',
  idempotency_mismatch: () => 'Call again.',
  rate_limited: ({ retryAfterS }) =>
    retryAfterS === undefined ? 'Wait a minute, then call again.' : `Wait ${retryAfterS} s, then call again.`,
  internal: ({ requestId }) =>
    `Tell the user; the server’s log has the cause${requestId ? ` under the request id ${requestId}` : ''}.`,
  unavailable: ({ retryAfterS = 5 }) =>
    `Wait ${retryAfterS} s, then call again; if it stays like that, tell the user.`,
  unreachable: afterNoAnswer,
  timed_out: afterNoAnswer,
  aborted: afterNoAnswer,
  unreadable: afterNoAnswer,
}

export const errorHint: Advise = (error, tool) => advice[error.fault.error](error, tool)
