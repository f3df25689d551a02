// Writes the type declarations of `adit/client`, `adit/edge` and `adit/tunnel` into dist. The compiler emits
// them, except api.d.ts of each: those types derive from the contract and are written out here from its
// schemas, so that users of the libraries need neither the contract nor TypeBox.
import { execFileSync } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findHost } from '../src/contract/edge/hosts.ts'
import { verifyKey } from '../src/contract/edge/operations.ts'
import { reportUsage } from '../src/contract/edge/reports.ts'
import { claimTunnels, syncTunnels } from '../src/contract/edge/tunnels.ts'
import { faults } from '../src/contract/faults.ts'
import type { Operation } from '../src/contract/operation.ts'
import { variants } from '../src/contract/variants.ts'
import { workspaceOperations } from '../src/contract/workspace/index.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

/** The part of JSON Schema that the contract uses. */
interface Schema {
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  maximum?: number
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  description?: string
}

/**
 * Integers of responses may exceed 2^53 and have the type `Count`, unless they are limited; others are
 * numbers.
 */
type IntegerType = 'number' | 'Count'

function toTypeScript(schema: Schema, integer: IntegerType): string {
  const { type, items, properties } = schema
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (schema.anyOf) return schema.anyOf.map((variant) => toTypeScript(variant, integer)).join(' | ')
  if (Array.isArray(type))
    return type.map((name) => toTypeScript({ ...schema, type: name }, integer)).join(' | ')
  if (type === 'integer') return schema.maximum === undefined ? integer : 'number'
  if (type === 'array' && items) return `(${toTypeScript(items, integer)})[]`
  if (type === 'object') return properties ? objectType(schema, integer) : 'object'
  if (type === 'string' || type === 'boolean' || type === 'null') return type
  throw new Error(`No TypeScript type for ${JSON.stringify(schema)}`)
}

function objectType({ properties = {}, required = [] }: Schema, integer: IntegerType): string {
  const members = Object.entries(properties).map(([name, schema]) => {
    const comment = schema.description ? `/** ${schema.description} */\n` : ''
    return `${comment}${name}${required.includes(name) ? '' : '?'}: ${toTypeScript(schema, integer)}`
  })
  return `{\n${members.join('\n').replace(/^/gm, '  ')}\n}`
}

/** Parameters, query and body in one object; headers are set by the client itself. */
function inputType({ params, query, body }: Operation): string {
  const parts = [params, query, body].filter((part) => part !== undefined) as Schema[]
  if (parts.length === 0) return 'unknown'
  const properties = Object.assign({}, ...parts.map((part) => part.properties))
  return objectType({ properties, required: parts.flatMap((part) => part.required ?? []) }, 'number')
}

function clientApi(): string {
  const shared = workspaceOperations.filter(({ id }) => id !== 'description.read')
  const operations = Object.entries(variants).map(([variant, list]) => {
    const ofWorkspace = shared.filter(({ method }) => variant === 'A' || method === 'GET')
    const entries = [...(list as readonly Operation[]), ...ofWorkspace].map((operation) => {
      const result = toTypeScript(operation.response.schema as Schema, 'Count')
      const type = `{ input: ${inputType(operation)}; result: ${result} }`
      const text = `/** ${operation.summary}. */\n'${operation.id}': ${type}`
      return text.replace(/^/gm, '    ')
    })
    return `  ${variant}: {\n${entries.join('\n')}\n  }`
  })
  const errors = Object.values(faults).map(({ schema }) => `  | ${toTypeScript(schema as Schema, 'number')}`)
  return `import type { Count } from './exact-json.js'
export type Variant = ${Object.keys(variants)
    .map((name) => `'${name}'`)
    .join(' | ')}
/** Input and result of each operation, by API variant. */
export interface Operations {
${operations.join('\n')}
}
/** The errors of the API, with the fields of each. */
export type ApiFault =
${errors.join('\n')}
`
}

const edgeApi = () => `/** Whether a key is valid, and to which workspace it belongs. */
export type VerifyResult = ${toTypeScript(verifyKey.response.schema as Schema, 'number')}
export type UsageQuota = NonNullable<(VerifyResult & { valid: true })['workspace']['quota']>
export type HostResult = ${toTypeScript(findHost.response.schema as Schema, 'number')}
export type Report = ${toTypeScript(reportUsage.body as Schema, 'number')}
export type Receipt = ${toTypeScript(reportUsage.response.schema as Schema, 'number')}
export type TunnelClaim = ${toTypeScript(claimTunnels.body as Schema, 'number')}
export type ClaimedTunnel = TunnelClaim['tunnels'][number]
type ClaimResults = ${toTypeScript(claimTunnels.response.schema as Schema, 'number')}
export type ClaimResult = ClaimResults['results'][number]
export type AccessRules = NonNullable<(ClaimResult & { granted: true })['access']>
export type TunnelSync = ${toTypeScript(syncTunnels.body as Schema, 'number')}
export type SyncResult = ${toTypeScript(syncTunnels.response.schema as Schema, 'number')}
`

const generated: Record<string, () => string> = {
  'client/api.d.ts': clientApi,
  'edge-sdk/api.d.ts': edgeApi,
}

const folder = mkdtempSync(join(tmpdir(), 'adit-declarations-'))
try {
  const options = ['-p', join(root, 'tsconfig.build.json'), '--outDir', folder]
  execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), ...options], {
    stdio: 'inherit',
  })
  for (const file of globSync('{client,edge-sdk,tunnel}/**/*.d.ts', { cwd: folder })) {
    const text = generated[file]?.() ?? readFileSync(join(folder, file), 'utf8')
    // The compiler leaves the source's .ts extensions in place; the files beside the declarations are .js.
    mkdirSync(dirname(join(root, 'dist', file)), { recursive: true })
    writeFileSync(join(root, 'dist', file), text.replace(/(from '\.[\w./-]+)\.ts'/g, "$1.js'"))
  }
} finally {
  rmSync(folder, { recursive: true })
}
