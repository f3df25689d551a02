// What a call came to → what the agent is given: structured beside readable, and a failure with what to do about it.
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { toSerializable } from '../client/exact-json.ts'
import type { AditError } from '../client/index.ts'
import { errorHint } from './error-hints.ts'
import { summaries } from './summaries.ts'
import type { AgentTool } from './tools.ts'

export function succeeded({ operation }: AgentTool, answer: object, given: object): CallToolResult {
  const structuredContent = toSerializable(answer) as Record<string, unknown>
  const sentence = (summaries[operation.id] as (answer: object, given: object) => string)(answer, given)
  return {
    content: [{ type: 'text', text: `${sentence}\n\n${JSON.stringify(structuredContent)}` }],
    structuredContent,
  }
}

/** Text alone: what is structured would have to be what the tool promises to return. */
export const failed = (error: AditError, tool: AgentTool): CallToolResult =>
  failure(`${error.fault.error}: ${wordsOf(error)}\n${errorHint(error, tool)}`)

/** Whether keys can mint keys is for the operator to decide, and an agent that knows the tool's name cannot know. */
export const leftToPeople = (): CallToolResult =>
  failure(
    'not_found: This server does not let API keys make or revoke API keys.\n' +
      'People do that in the dashboard: ask the user to do it there.',
  )

const failure = (text: string): CallToolResult => ({ isError: true, content: [{ type: 'text', text }] })

/** Agents know arguments by their names, not by the place that they have in a request. */
function wordsOf({ fault, message }: AditError): string {
  if (fault.error !== 'invalid_request') return message
  const words = fault.details.map((detail) => {
    const name = detail.path.replace(/^\/(params|query|body)\b/, '').replace(/^\//, '')
    return `${name} ${detail.message}`.trim()
  })
  return `${words.join('; ')}.`
}
