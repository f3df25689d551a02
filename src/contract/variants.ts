// The public API, whole: each variant is its list of operations, and nothing outside the list is served.
import { readDescription } from './description.ts'
import { createToken, listTokens, revokeToken } from './tokens.ts'
import { readUsage } from './usage.ts'
import { readWorkspace } from './workspace.ts'

export const PUBLIC_PREFIX = '/api/v1'

export const variants = {
  A: [readWorkspace.A, listTokens, createToken, revokeToken, readUsage.A, readDescription],
  B: [readWorkspace.B, listTokens, readUsage.B, readDescription],
} as const

export type Variant = keyof typeof variants
