// The contract: every operation of every API as a value, with its path, access, input, output and errors.
// Routes, validation, serialization, OpenAPI documents, the client and the MCP tools derive from it.
import type { Static, TObject, TSchema } from 'typebox'
import type { AuditAction } from './audit-actions.ts'
import type { FaultCode } from './faults.ts'

/**
 * Required access: `anyone`; an API `key` of a workspace; an `edge`; a `device` that asks for a key, or an
 * agent, so without credentials; a `browser` on the dashboard's origin, signed in or not; a signed-in `user`;
 * or a member of the workspace in the path with at least that role.
 */
export type Access = 'anyone' | 'key' | 'edge' | 'device' | 'browser' | 'user' | Role

/** Roles in a workspace, in ascending order. */
export const roles = ['member', 'admin', 'owner'] as const
export type Role = (typeof roles)[number]

/** The actions that an operation writes to the audit log, or why it writes none. */
export type Audit = readonly AuditAction[] | { readonly none: string }

/** An operation that may change something says what it writes to the audit log. */
export type Operation = OperationDefinition &
  (
    | { readonly method: 'GET'; readonly audit?: Audit }
    | { readonly method: 'POST' | 'DELETE'; readonly audit: Audit }
  )

interface OperationDefinition {
  readonly id: string
  /** Relative to the prefix of its API, with parameters in braces: `/tokens/{id}`. */
  readonly path: `/${string}`
  readonly access: Access
  readonly summary: string
  /** Descriptions and examples are absent in the API of the dashboard, which has no other clients. */
  readonly description?: string
  readonly params?: TObject
  readonly query?: TObject
  readonly headers?: TObject
  readonly body?: TObject
  /**
   * An operation of OAuth, whose errors have an `error_description`. A `form` has the body
   * `application/x-www-form-urlencoded`, and its properties are strings.
   */
  readonly oauth?: 'form' | 'json'
  /**
   * Set for an operation that ends access, such as signing out. The write limit does not apply to it: a
   * stolen session that uses up the limit must not keep its owner from ending it.
   */
  readonly endsAccess?: true
  /** Maximum body size, if larger than the server's default. */
  readonly bodyBytesMax?: number
  readonly response: ResponseDefinition
  /** Errors specific to this operation; see `listFaults` for those that apply to all. */
  readonly faults?: readonly FaultCode[]
  /** The MCP tool that calls this operation. */
  readonly tool?: Tool
}

/** An operation as an MCP tool: all its input in one object, without paths and headers. */
interface Tool {
  readonly name: string
  readonly title: string
  /** Replaces the operation's description where that mentions HTTP, or agents need to know more. */
  readonly description?: string
  /** Agents ask their user before they call a destructive tool. */
  readonly hints:
    | { readonly readOnly: true }
    | { readonly destructive: boolean; readonly idempotent: boolean }
}

interface ResponseDefinition {
  readonly status: 200 | 201 | 204 | 302
  readonly description?: string
  readonly schema: TSchema
  readonly example?: unknown
  /** The response contains a secret and must not be cached. */
  readonly secret?: true
  /** The response is a stream of server-sent events; the schema describes their data. */
  readonly stream?: true
  /** The response is a file; the schema describes its text. */
  readonly file?: true
  /** The result is sent as response headers, without a body. */
  readonly asHeaders?: true
  /** The response may be one page of a list, with a `Link` header to the next. */
  readonly paged?: true
  /** An expected outcome other than success, sent with status 400: an error of OAuth. */
  readonly rejection?: { readonly schema: TObject; readonly example: { readonly error: string } }
}

/**
 * For input that restricts something: a misspelled member is rejected, and does not leave it unrestricted.
 */
export const STRICT = { additionalProperties: false } as const

/** The audit log of an operation with a body that keeps a secret out of the URL. */
export const READS_ONLY = { none: 'It only reads.' } as const

export const FORM_TYPE = 'application/x-www-form-urlencoded'

export const operation = <const T extends Operation>(definition: T): T => definition

type PartOf<O extends Operation, P extends 'params' | 'query' | 'headers' | 'body'> = O[P] extends TSchema
  ? Static<O[P]>
  : unknown

/** The whole input in one object; names are unique across params, query, headers and body. */
export type InputOf<O extends Operation> = PartOf<O, 'params'> &
  PartOf<O, 'query'> &
  PartOf<O, 'headers'> &
  PartOf<O, 'body'>

export type OutputOf<O extends Operation> = O['response'] extends { stream: true }
  ? AsyncIterable<string>
  : O['response'] extends { file: true }
    ? FileContent
    : Static<O['response']['schema']>

/** The bodies of expected outcomes other than success. */
export type RejectionOf<O extends Operation> = O['response'] extends { rejection: { schema: infer S } }
  ? Static<S & TSchema>
  : never

/** A file that is streamed in chunks. */
export interface FileContent {
  /** Media type. */
  readonly type: string
  readonly name: string
  readonly chunks: AsyncIterable<string>
}

/** Whether it counts against the limit of writes of a signed-in user. */
export const isLimitedWrite = ({ method, access, endsAccess }: Operation): boolean =>
  method !== 'GET' && (access === 'user' || roles.some((role) => role === access)) && !endsAccess

/** All errors of an operation: those of any request, of its access check, and its own. */
export function listFaults(operation: Operation): FaultCode[] {
  const anyRequest: FaultCode[] = ['invalid_request', 'internal']
  const byAccess: Record<Access, FaultCode[]> = {
    anyone: [],
    key: ['unauthorized', 'rate_limited', 'unavailable'],
    edge: ['unauthorized', 'unavailable'],
    device: ['forbidden', 'rate_limited', 'unavailable'],
    browser: ['forbidden', 'unavailable'],
    user: ['unauthorized', 'forbidden', 'unavailable'],
    member: ['unauthorized', 'forbidden', 'not_found', 'unavailable'],
    admin: ['unauthorized', 'forbidden', 'not_found', 'unavailable'],
    owner: ['unauthorized', 'forbidden', 'not_found', 'unavailable'],
  }
  const byLimit: FaultCode[] = isLimitedWrite(operation) ? ['rate_limited'] : []
  return [...new Set([...anyRequest, ...byAccess[operation.access], ...byLimit, ...(operation.faults ?? [])])]
}
