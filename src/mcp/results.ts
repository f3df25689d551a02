// Tool results: structured content with a summary as text, and errors with a hint.
import type { CallToolResult } from '@modelcontextprotocol/server'
import { toSerializable } from '../client/exact-json.ts'
import type { AditError } from '../client/index.ts'
import { errorHint } from './error-hints.ts'
import { summaries } from './summaries.ts'
import type { AgentTool } from './tools.ts'

export function succeeded({ operation }: AgentTool, output: object, args: object): CallToolResult {
  const structuredContent = toSerializable(output) as Record<string, unknown>
  const summary = (summaries[operation.id] as (output: object, args: object) => string)(output, args)
  return {
    content: [{ type: 'text', text: `${summary}\n\n${JSON.stringify(structuredContent)}` }],
    structuredContent,
  }
}

/** Text only: structured content would have to match the tool's output schema. */
export const failed = (error: AditError, tool: AgentTool): CallToolResult =>
  failure(`${error.fault.error}: ${errorMessage(error)}\n${errorHint(error, tool)}`)

/** The result of a local tool whose arguments are invalid. */
export const invalidArguments = (error: AditError): CallToolResult =>
  failure(`invalid_request: ${errorMessage(error)}\nCorrect the arguments and call again.`)

/** For variant B, in which API keys only read. */
export const notAvailable = (): CallToolResult =>
  failure(
    'not_found: On this server, API keys only read: they cannot create or revoke API keys, or close tunnels.\n' +
      'Ask the user to do it in the dashboard.',
  )

const failure = (text: string): CallToolResult => ({ isError: true, content: [{ type: 'text', text }] })

/** Refers to arguments by name, not by their position in the request. */
function errorMessage({ fault, message }: AditError): string {
  if (fault.error !== 'invalid_request') return message
  const messages = fault.details.map((detail) => {
    const name = detail.path.replace(/^\/(params|query|body)\b/, '').replace(/^\//, '')
    return `${name} ${detail.message}`.trim()
  })
  return `${messages.join('; ')}.`
}
