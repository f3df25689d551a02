// The header Adit-Tunnel: what a tunnel client asks for.
import type { IncomingMessage } from 'node:http'
import { HOST_HEADER_RULE, isHost, normalizeOrigin } from '../../lib/net/host-header.ts'
import { TUNNEL_HEADER, type TunnelRequest } from '../../tunnel-protocol/protocol.ts'
import { InvalidAccess, parseAccess, rejectUnknown } from '../../tunnel-protocol/requested-access.ts'

const HEADER_CHARS_MAX = 4_096
/** Format of `resume` and `session`. */
const SECRET = /^[\w-]{32}$/
const CLIENT = /^[\x20-\x7e]{0,64}$/
const IDLE_CONNECTIONS_MAX = 1_000
const FIELDS =
  'type, name, pool, resume, session, client, access, target, hostHeader, idleConnections and extra'
const INVALID_HEADER =
  'The header Adit-Tunnel must be a JSON object of at most 4 KiB with type ("http" or "tcp"), name, pool, ' +
  'resume, session, client, access, target (an origin such as "http://localhost:3000"), hostHeader, ' +
  'idleConnections (0 to 1000) and extra, all of them optional.'
const INVALID_HOST_HEADER = `Invalid hostHeader (expected ${HOST_HEADER_RULE}, and a target).`

/** Returns the parsed header, or a message that says why it is invalid. */
export function readTunnelRequest({ headers }: IncomingMessage): TunnelRequest | string {
  try {
    return parseTunnelRequest(headers[TUNNEL_HEADER]) ?? INVALID_HEADER
  } catch (error) {
    if (error instanceof InvalidAccess) return error.message
    throw error
  }
}

function parseTunnelRequest(header: string | string[] | undefined = '{}'): TunnelRequest | undefined {
  if (typeof header !== 'string' || header.length > HEADER_CHARS_MAX) return undefined
  let parsed: unknown
  try {
    parsed = JSON.parse(header)
  } catch {
    return undefined
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return undefined
  const {
    type = 'http',
    name,
    pool = false,
    resume,
    session,
    client,
    access,
    target,
    hostHeader,
    idleConnections,
    extra = false,
    ...others
  } = parsed as Record<string, unknown>
  rejectUnknown('Adit-Tunnel', others, FIELDS)
  if (type !== 'http' && type !== 'tcp') return undefined
  if (typeof pool !== 'boolean' || typeof extra !== 'boolean') return undefined
  if (name !== undefined && typeof name !== 'string') return undefined
  if (!isSecret(resume) || !isSecret(session)) return undefined
  if (client !== undefined && !(typeof client === 'string' && CLIENT.test(client))) return undefined
  if (target !== undefined && !(typeof target === 'string' && normalizeOrigin(target))) return undefined
  if (hostHeader !== undefined && !isHostHeader(hostHeader, target))
    throw new InvalidAccess(INVALID_HOST_HEADER)
  if (idleConnections !== undefined && !isIdleConnections(idleConnections)) return undefined
  const rules = access === undefined ? undefined : parseAccess(type, access)
  return {
    ...{ type, name, pool, resume, session, client, target, hostHeader, idleConnections, extra },
    access: rules,
  }
}

const isSecret = (value: unknown): value is string | undefined =>
  value === undefined || (typeof value === 'string' && SECRET.test(value))

const isIdleConnections = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= IDLE_CONNECTIONS_MAX

const isHostHeader = (value: unknown, target: string | undefined): value is string =>
  typeof value === 'string' && isHost(value) && target !== undefined
