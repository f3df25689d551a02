// An operation is a value: what it is called, who may call it, what goes in and what comes out. Routes,
// validation, serialisation, the OpenAPI document, clients and agents' tools are all made from it.
import type { Static, TObject, TSchema } from 'typebox'
import type { FaultCode } from './faults.ts'

/**
 * Who may call: anybody; the holder of a workspace's API key; an edge; and of people anybody at a browser of ours, whoever
 * is signed in, or a member of the workspace in the path whose role is at least that.
 */
export type Access = 'anyone' | 'key' | 'edge' | 'browser' | 'user' | Role

/** What people are in a workspace, each including the ones before. */
export const roles = ['member', 'admin', 'owner'] as const
export type Role = (typeof roles)[number]

export interface Operation {
  readonly id: string
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Relative to its surface, parameters in braces: `/tokens/{id}`. */
  readonly path: `/${string}`
  readonly access: Access
  readonly summary: string
  readonly description: string
  readonly params?: TObject
  readonly query?: TObject
  readonly headers?: TObject
  readonly body?: TObject
  /** How large a body may be, where the server's usual bound is too small. */
  readonly bodyBytesMax?: number
  readonly response: ResponseDefinition
  /** The faults of its own; those that every operation can answer with are implied. */
  readonly faults: readonly FaultCode[]
  /** Agents may call it, under this name. */
  readonly tool?: Tool
}

/** An operation as agents see it: they call it with all that it takes in one object, and see neither paths nor headers. */
export interface Tool {
  readonly name: string
  readonly title: string
  /** Where the operation's own description speaks of what agents do not see, or they need to be told more. */
  readonly description?: string
  /** Agents ask their people before they call what takes something away. */
  readonly hints:
    | { readonly readOnly: true }
    | { readonly destructive: boolean; readonly idempotent: boolean }
}

export interface ResponseDefinition {
  readonly status: 200 | 201 | 204 | 302
  readonly description: string
  readonly schema: TSchema
  readonly example: unknown
  /** The answer holds a secret, so nothing on the way may store it. */
  readonly secret?: true
  /** The answer is a stream of server-sent events, of which the schema describes the data. */
  readonly stream?: true
  /** The members of the answer are sent as headers, and there is no body. */
  readonly asHeaders?: true
  /** The answer may be one page of a list; the next one is named in a `Link` header. */
  readonly paged?: true
}

export const operation = <const T extends Operation>(definition: T): T => definition

type PartOf<O extends Operation, P extends 'params' | 'query' | 'headers' | 'body'> = O[P] extends TSchema
  ? Static<O[P]>
  : unknown

/** Everything a caller sends, in one object; names are unique across the parts of an operation. */
export type InputOf<O extends Operation> = PartOf<O, 'params'> &
  PartOf<O, 'query'> &
  PartOf<O, 'headers'> &
  PartOf<O, 'body'>

export type OutputOf<O extends Operation> = O['response'] extends { stream: true }
  ? AsyncIterable<string>
  : Static<O['response']['schema']>

/** The faults an operation can answer with: those that any request can run into, and its own. */
export function faultsOf(operation: Operation): FaultCode[] {
  const anyRequest: FaultCode[] = ['invalid_request', 'internal']
  const admission: Record<Access, FaultCode[]> = {
    anyone: [],
    key: ['unauthorized', 'rate_limited', 'unavailable'],
    edge: ['unauthorized', 'unavailable'],
    browser: ['forbidden', 'unavailable'],
    user: ['unauthorized', 'forbidden', 'unavailable'],
    member: ['unauthorized', 'forbidden', 'not_found', 'unavailable'],
    admin: ['unauthorized', 'forbidden', 'not_found', 'unavailable'],
    owner: ['unauthorized', 'forbidden', 'not_found', 'unavailable'],
  }
  return [...new Set([...anyRequest, ...admission[operation.access], ...operation.faults])]
}
