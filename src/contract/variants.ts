// The public API: the operations of each variant. Nothing else is served.
import { readDescription } from './description.ts'
import { createToken, listTokens, revokeToken } from './public/tokens.ts'
import { readUsage } from './public/usage.ts'
import { readWorkspace } from './public/workspace.ts'

export const variants = {
  A: [readWorkspace.A, listTokens, createToken, revokeToken, readUsage.A, readDescription],
  B: [readWorkspace.B, listTokens, readUsage.B, readDescription],
} as const

export type Variant = keyof typeof variants
