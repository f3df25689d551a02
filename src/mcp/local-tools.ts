// Tools that act on the machine of the agent. Only `adit mcp` has them, never a server.
import type { Tool as ListedTool } from '@modelcontextprotocol/server'

export interface LocalTool {
  /** The definition in the response of tools/list. */
  readonly definition: ListedTool
  call(args: Record<string, unknown>, signal: AbortSignal): Promise<LocalResult>
}

export interface LocalResult {
  readonly text: string
  readonly isError?: boolean
}

export interface LocalTools {
  /** For the agent, added to those of the workspace. */
  readonly instructions: string
  readonly tools: readonly LocalTool[]
}
