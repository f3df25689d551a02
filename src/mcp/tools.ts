// The operations of the contract as MCP tools, for each variant, with their input and output schemas.
import type { Tool as ListedTool } from '@modelcontextprotocol/server'
import { documentedSchema } from '../contract/documented-schema.ts'
import type { Operation } from '../contract/operation.ts'
import { type Variant, variants } from '../contract/variants.ts'
import { workspaceOperations } from '../contract/workspace/index.ts'

type KeyOperation = (typeof variants)[Variant][number] | (typeof workspaceOperations)[number]
export type ToolOperation = Extract<KeyOperation, { tool: object }>

export interface AgentTool {
  operation: ToolOperation
  /** The definition in the response of tools/list. */
  definition: ListedTool
}

export const toolsByVariant: Record<Variant, readonly AgentTool[]> = {
  A: listTools([...variants.A, ...workspaceOperations]),
  // API keys only read.
  B: listTools([...variants.B, ...workspaceOperations.filter(({ method }) => method === 'GET')]),
}

/**
 * While the server cannot be reached, its variant is unknown. Both have the tools of B, whose results differ.
 */
export const unavailableTools = (reason: string): ListedTool[] =>
  toolsByVariant.B.map(({ definition: { outputSchema: _, ...definition } }) => ({
    ...definition,
    description:
      `Not available when the tools were listed: ${reason} It may work again; then list the tools again, ` +
      `because there may be more. ${definition.description}`,
  }))

function listTools(operations: readonly KeyOperation[]): AgentTool[] {
  return operations.filter((operation) => 'tool' in operation).map(describe)
}

function describe(operation: ToolOperation): AgentTool {
  const { tool, params, query, body, response, description }: Operation & Pick<ToolOperation, 'tool'> =
    operation
  const parts = [params, query, body].filter((part) => part !== undefined)
  const definition: ListedTool = {
    name: tool.name,
    title: tool.title,
    description: 'description' in tool ? tool.description : description,
    inputSchema: {
      type: 'object',
      properties: Object.assign({}, ...parts.map((part) => documented(part.properties))),
      required: parts.flatMap((part) => (part.required as string[] | undefined) ?? []),
      additionalProperties: false,
    },
    outputSchema: documented(response.schema) as NonNullable<ListedTool['outputSchema']>,
    annotations: toAnnotations(tool.hints),
  }
  return { operation, definition }
}

/** Tools act on one workspace only, so openWorldHint is false. */
function toAnnotations(hints: ToolOperation['tool']['hints']): NonNullable<ListedTool['annotations']> {
  const closed = { openWorldHint: false }
  return 'readOnly' in hints
    ? { readOnlyHint: true, ...closed }
    : { destructiveHint: hints.destructive, idempotentHint: hints.idempotent, ...closed }
}

/** A copy of a schema as agents and their tools understand it. */
function documented(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(documented)
  if (typeof schema !== 'object' || schema === null) return schema
  const members = Object.entries(documentedSchema(schema as Record<string, unknown>))
  return Object.fromEntries(members.map(([member, value]) => [member, documented(value)]))
}
