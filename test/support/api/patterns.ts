// The regular expressions of all OpenAPI documents and MCP tools, with texts that they must accept.
import { type Api, apis } from '../../../src/contract/apis.ts'
import { describe } from '../../../src/contract/openapi.ts'
import { toolsByVariant } from '../../../src/mcp/tools.ts'

interface Patterned {
  pattern?: unknown
  examples?: unknown[]
}

/** Labels that the server accepts. */
export const LABELS = [
  '',
  'ci',
  '😀'.repeat(80),
  '👩🏽‍🚀 1️⃣',
  'می\u200cخواهم',
  'क्\u200dष',
  'שלום',
  'a\u00a0\u3000b',
]

/** The texts by pattern. */
export function documentedPatterns(): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>()
  const add = (pattern: string, texts: unknown[]) =>
    found.set(
      pattern,
      new Set([...(found.get(pattern) ?? []), ...texts.filter((text) => typeof text === 'string')]),
    )
  const collect = (value: unknown, name = ''): void => {
    if (typeof value !== 'object' || value === null) return
    const { pattern, examples = [] } = value as Patterned
    if (typeof pattern === 'string') add(pattern, [...examples, ...(name === 'label' ? LABELS : [])])
    for (const [member, part] of Object.entries(value)) collect(part, member)
  }
  for (const api of Object.values<Api>(apis))
    if (api.document) collect(describe({ ...api, document: api.document }, ''))
  for (const { definition } of Object.values(toolsByVariant).flat()) collect(definition)
  return found
}
