// Hints for agents after a failed call, appended to the error message.
import type { AditError, Fault } from '../client/index.ts'
import type { AgentTool } from './tools.ts'

type Hint = (error: AditError, tool: AgentTool) => string

const isOnTunnels = ({ operation: { id } }: AgentTool) => id === 'tunnels.read' || id === 'tunnels.close'

/** Without a response, only a read is certain to have changed nothing. */
const withoutResponse: Hint = (_error, tool) =>
  tool.operation.method === 'GET'
    ? 'Try again in a moment. If it keeps failing, ask the user to check that the server is ' +
      'running and its URL is correct.'
    : `The call may have succeeded: check with ${listTool(tool)} before you try again.`

const listTool = (tool: AgentTool) => (isOnTunnels(tool) ? 'list_tunnels' : 'list_api_keys')

const hints: { [Code in Fault['error']]: Hint } = {
  // A detail without a path is about the workspace: its policy, or a limit.
  invalid_request: ({ fault }) =>
    'details' in fault && fault.details.length > 0 && fault.details.every(({ path }) => path === '')
      ? 'Tell the user. Calling again does not help.'
      : 'Correct the arguments and call again.',
  unauthorized: () =>
    'The API key of this connection is not valid. Ask the user for another one; retrying does not help.',
  forbidden: () => 'This API key is not allowed to do this. Tell the user.',
  not_found: (_error, tool) => {
    const check = `Check with ${listTool(tool)}.`
    if (tool.operation.id === 'tokens.revoke')
      return `No active API key of this workspace has this id: it does not exist or is already revoked. ${check}`
    if (isOnTunnels(tool))
      return `No open tunnel of this workspace has this id: it does not exist or was closed. ${check}`
    return 'The server does not support this. Tell the user that it may run another version of the API.'
  },
  conflict: () => 'Read the current state, then decide again.',
  idempotency_mismatch: () => 'Call again.',
  rate_limited: ({ retryAfterS }) =>
    retryAfterS === undefined ? 'Wait a minute, then call again.' : `Wait ${retryAfterS} s, then call again.`,
  internal: ({ requestId }) =>
    `Tell the user. The server log has the cause${requestId ? ` under the request id ${requestId}` : ''}.`,
  unavailable: ({ retryAfterS = 5 }) =>
    `Wait ${retryAfterS} s, then call again. If it keeps failing, tell the user.`,
  unreachable: withoutResponse,
  timed_out: withoutResponse,
  aborted: withoutResponse,
  unreadable: withoutResponse,
}

export const errorHint: Hint = (error, tool) => hints[error.fault.error](error, tool)
