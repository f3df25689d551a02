// What edges send each other. A peer may be of another version, or hostile: every field is checked.
import { ALLOWED_NETWORKS_MAX } from '../../lib/credentials/access-limits.ts'
import { isHost, normalizeOrigin } from '../../lib/net/host-header.ts'
import { parseNetwork } from '../../lib/net/ip-network.ts'
import { type ForwardProblem, toRequestProblem } from '../../tunnel-protocol/problems.ts'
import type { ProxiedConnection, ProxiedRequest, TunnelType } from '../../tunnel-protocol/protocol.ts'
import type { AccessRules } from '../access/access-control.ts'
import { PeerProtocolError, parseObject } from './control-lines.ts'

/** In a larger pool, clients beyond this get no requests from other edges. */
export const CLIENTS_MAX = 50
const HEAD_BYTES_MAX = 1_024
const HEAD_LENGTH_BYTES = 2
const TEXT_CHARS_MAX = 4_096

/** A tunnel, as the edge that has its clients describes it to the entry edge. */
export interface Description {
  readonly host: string
  readonly name: string
  readonly url: string
  readonly type: TunnelType
  readonly workspace: string
  /** Grows when the access rules change. */
  readonly revision: number
  readonly clientRules: AccessRules
  readonly nameRules: AccessRules
  /** Until when the quota of the workspace rejects requests, in milliseconds since 1970. */
  readonly quotaReachedUntil?: number | undefined
  readonly clients: readonly DescribedClient[]
}

export interface DescribedClient {
  readonly id: string
  /** SHA-256 of the API key. */
  readonly keyHash: string
  readonly target?: string | undefined
  readonly hostHeader?: string | undefined
  readonly idleConnections?: number | undefined
}

export type EntryMessage =
  | { readonly describe: string }
  /** Changes of the host are not sent any more. */
  | { readonly forget: string }
  /** The entry edge decides by the revision, and uses no stream of an earlier one for another request. */
  | { readonly applied: string; readonly revision: number }
  /** Whether a client responds. */
  | { readonly probe: string }
  /** The traffic of the message `end` with this number has ended. */
  | { readonly ended: number }
  | ClientEvent

/** A request or a TCP connection is complete: for the terminal of the client. */
export type ClientEvent =
  | { readonly client: string; readonly request: ProxiedRequest }
  | { readonly client: string; readonly connection: ProxiedConnection }

export type ServingMessage =
  | { readonly tunnel: Description }
  | { readonly gone: string }
  /** The client has responded to a probe, or is gone. */
  | { readonly probed: string }
  /** The worker is stopping, and another one accepts a new session. */
  | { readonly replaced: true }
  /** A key is not valid any more, or a workspace is archived: what came from its clients must end. */
  | { readonly end: number; readonly subject: Subject }

/** The SHA-256 of a key, or a workspace. */
export interface Subject {
  readonly keyHash?: string | undefined
  readonly workspace?: string | undefined
}

/** The beginning of a forwarded stream. */
export interface StreamHead {
  readonly host: string
  readonly client: string
  /** The access rules by which the entry edge has decided. */
  readonly revision: number
  readonly type: TunnelType
}

/**
 * What the serving edge sends first on a stream of a TCP tunnel. The entry edge sends nothing before: after
 * another byte than that of `connected`, it may pass the connection on to another edge.
 */
export const VERDICTS = ['connected', 'tunnel_moved', 'tunnel_busy'] as const satisfies readonly (
  | ForwardProblem
  | 'connected'
)[]
export type Verdict = (typeof VERDICTS)[number]

type Fields = Readonly<Record<string, unknown>>

export function formatHead({ type, ...head }: StreamHead): Buffer {
  const json = Buffer.from(JSON.stringify(type === 'http' ? head : { ...head, type }))
  const bytes = Buffer.allocUnsafe(HEAD_LENGTH_BYTES + json.length)
  bytes.writeUInt16BE(json.length)
  json.copy(bytes, HEAD_LENGTH_BYTES)
  return bytes
}

/** Undefined if the head is not complete yet. */
export function parseHead(received: Buffer): { head: StreamHead; rest: Buffer } | undefined {
  if (received.length < HEAD_LENGTH_BYTES) return undefined
  const end = HEAD_LENGTH_BYTES + received.readUInt16BE()
  if (end > HEAD_BYTES_MAX) throw new PeerProtocolError(`head over ${HEAD_BYTES_MAX} bytes`)
  if (received.length < end) return undefined
  const fields = parseObject(received.toString('utf8', HEAD_LENGTH_BYTES, end))
  const { host, client, revision, type = 'http' } = fields
  if (!isType(type)) throw invalid('type', type)
  const head = { host: text(host), client: text(client), revision: integer(revision), type }
  return { head, rest: received.subarray(end) }
}

export function parseEntryMessage(fields: Fields): EntryMessage {
  if (fields.describe !== undefined) return { describe: text(fields.describe) }
  if (fields.forget !== undefined) return { forget: text(fields.forget) }
  if (fields.ended !== undefined) return { ended: integer(fields.ended) }
  if (fields.applied !== undefined)
    return { applied: text(fields.applied), revision: integer(fields.revision) }
  if (fields.probe !== undefined) return { probe: text(fields.probe) }
  const client = text(fields.client)
  return fields.connection === undefined
    ? { client, request: parseRequest(object(fields.request)) }
    : { client, connection: parseTransfer(object(fields.connection)) }
}

export function parseServingMessage(fields: Fields): ServingMessage {
  if (fields.gone !== undefined) return { gone: text(fields.gone) }
  if (fields.probed !== undefined) return { probed: text(fields.probed) }
  if (fields.replaced === true) return { replaced: true }
  if (fields.end !== undefined)
    return { end: integer(fields.end), subject: parseSubject(object(fields.subject)) }
  const tunnel = object(fields.tunnel)
  const { type, quotaReachedUntil: until, clients } = tunnel
  if (!isType(type)) throw invalid('type', type)
  if (!Array.isArray(clients) || clients.length > CLIENTS_MAX) throw invalid('clients', clients)
  return {
    tunnel: {
      host: text(tunnel.host),
      name: text(tunnel.name),
      url: text(tunnel.url),
      type,
      workspace: text(tunnel.workspace),
      revision: integer(tunnel.revision),
      clientRules: parseRules(object(tunnel.clientRules)),
      nameRules: parseRules(object(tunnel.nameRules)),
      quotaReachedUntil: until === undefined ? undefined : integer(until),
      clients: clients.map((client) => parseClient(object(client))),
    },
  }
}

const parseSubject = ({ keyHash, workspace }: Fields): Subject => ({
  keyHash: keyHash === undefined ? undefined : text(keyHash),
  workspace: workspace === undefined ? undefined : text(workspace),
})

function parseClient({ id, keyHash, target, hostHeader, idleConnections }: Fields): DescribedClient {
  if (target !== undefined && normalizeOrigin(text(target)) === undefined) throw invalid('target', target)
  return {
    id: text(id),
    keyHash: text(keyHash),
    target: target as string | undefined,
    hostHeader: parseHostHeader(hostHeader),
    idleConnections: idleConnections === undefined ? undefined : integer(idleConnections),
  }
}

function parseRules({ basicAuth, allowIp, hostHeader }: Fields): AccessRules {
  if (!Array.isArray(allowIp) || allowIp.length > ALLOWED_NETWORKS_MAX) throw invalid('allowIp', allowIp)
  // A network that is not understood must not turn into no rule.
  if (!allowIp.every((network) => parseNetwork(text(network)))) throw invalid('allowIp', allowIp)
  const { user, hash } = basicAuth === null ? {} : object(basicAuth)
  return {
    basicAuth: basicAuth === null ? null : { user: text(user), hash: text(hash) },
    allowIp,
    hostHeader: parseHostHeader(hostHeader),
  }
}

/** `rewrite` is a host, too. */
function parseHostHeader(value: unknown): string | undefined {
  if (value !== undefined && !isHost(text(value))) throw invalid('hostHeader', value)
  return value as string | undefined
}

function parseRequest(fields: Fields): ProxiedRequest {
  const { method, path, status } = fields
  return {
    method: text(method),
    path: text(path),
    status: integer(status),
    ...parseTransfer(fields),
    ...toRequestProblem(fields),
  }
}

function parseTransfer({ bytesIn, bytesOut, ms }: Fields): ProxiedConnection {
  if (typeof ms !== 'number') throw invalid('ms', ms)
  return { bytesIn: integer(bytesIn), bytesOut: integer(bytesOut), ms }
}

const isType = (value: unknown): value is TunnelType => value === 'http' || value === 'tcp'

function text(value: unknown): string {
  if (typeof value !== 'string' || value.length > TEXT_CHARS_MAX) throw invalid('text', value)
  return value
}

function integer(value: unknown): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw invalid('number', value)
  return value as number
}

function object(value: unknown): Fields {
  if (typeof value !== 'object' || value === null) throw invalid('object', value)
  return value as Fields
}

const invalid = (field: string, value: unknown) =>
  new PeerProtocolError(`invalid ${field}: ${String(JSON.stringify(value)).slice(0, 100)}`)
