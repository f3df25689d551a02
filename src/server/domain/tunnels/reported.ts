// Tunnels as edges report them in claims and syncs, and the rows that are stored of them.
import type { ClaimedTunnel, ClientAccess, ReportedTunnel } from '../../../contract/edge/tunnel-fields.ts'
import type { RejectionReason } from '../../../contract/edge/tunnels.ts'
import { hashSecret } from '../../../lib/credentials/secret.ts'
import { normalizeAddress } from '../../../lib/net/ip-address.ts'
import { parseNetwork } from '../../../lib/net/ip-network.ts'
import type { ReportedRow, StoredTunnel } from '../../store/tunnels/rows.ts'
import type { Services } from '../context.ts'
import { invalid } from '../fault.ts'
import { parseTimestamp } from '../timestamps.ts'

/** Why a tunnel is not admitted. */
export interface RejectedTunnel {
  reason: RejectionReason
  message: string
}

export interface ParsedTunnel {
  tunnel: ClaimedTunnel
  /** The tunnel is not open yet: its claim has no response. */
  isClaiming: boolean
  openedAt: number
  /** The port in the URL. */
  port: number | undefined
  requests: number
  bytesIn: number
  bytesOut: number
  streams: number
}

type Usage = Omit<ReportedTunnel, keyof ClaimedTunnel>

const NO_USAGE: Usage = { requests: 0, bytesIn: 0, bytesOut: 0, streams: 0 }

/** `path` is that of the tunnel in the request. A claim has no usage. */
export function parseTunnel(tunnel: ClaimedTunnel & Partial<Usage>, path: string): ParsedTunnel {
  const { requests, bytesIn, bytesOut, streams, isClaiming = false, ...claimed } = { ...NO_USAGE, ...tunnel }
  const { access } = tunnel
  const clientAddress = normalizeAddress(tunnel.clientAddress)
  if (clientAddress === undefined) throw invalid(`${path}/clientAddress`, 'must be an IP address')
  return {
    tunnel: { ...claimed, clientAddress, ...(access && { access: canonicalAccess(access, path) }) },
    isClaiming,
    openedAt: parseTimestamp(tunnel.openedAt, () => `${path}/openedAt`),
    port: parsePort(tunnel.url),
    requests,
    bytesIn,
    bytesOut,
    streams,
  }
}

const canonicalAccess = ({ basicAuth, allowIp }: ClientAccess, path: string): ClientAccess => ({
  basicAuth,
  allowIp: allowIp.map((text, index) => {
    const network = parseNetwork(text)
    if (network === undefined)
      throw invalid(`${path}/access/allowIp/${index}`, 'must be an IP address or network')
    return network
  }),
})

const NO_ACCESS: ClientAccess = { basicAuth: false, allowIp: [] }

/** Tunnels of edges that do not report rules have none. */
export const parseClientAccess = (text: string | null): ClientAccess =>
  text === null ? NO_ACCESS : (JSON.parse(text) as ClientAccess)

/** Whether the edge reports the tunnel that is stored under this id. */
export const isSameTunnel = ({ workspace, name, type, keyId }: ClaimedTunnel, stored: StoredTunnel) =>
  workspace === stored.slug && name === stored.name && type === stored.type && keyId === stored.key_id

/** A report of a stored tunnel: what was admitted cannot be changed by a later report with the same id. */
export const restoreAdmitted = (parsed: ParsedTunnel, stored: StoredTunnel): ParsedTunnel => ({
  ...parsed,
  tunnel: {
    ...parsed.tunnel,
    workspace: stored.slug,
    name: stored.name,
    type: stored.type,
    keyId: stored.key_id,
  },
})

/** Hex digits of a public id, which is derived from the session of its client. */
const ID_CHARS = 26

/** The connections of a client with one name have the same id. */
export const publicId = (workspaceId: string, { id, name, type, session, resume }: ClaimedTunnel): string => {
  const secretHash = session ?? resume
  if (secretHash === undefined) return id
  return `tun_${hashSecret(`${workspaceId} ${name} ${type} ${secretHash}`).slice(0, ID_CHARS)}`
}

export function createTunnelRow(
  { tunnelDomain }: Pick<Services, 'tunnelDomain'>,
  { edgeId, sequence }: { edgeId: string; sequence: number },
  { parsed, workspace_id, port }: { parsed: ParsedTunnel; workspace_id: string; port?: number | undefined },
): ReportedRow {
  const { tunnel, openedAt, requests, bytesIn, bytesOut, streams } = parsed
  return {
    edge_id: edgeId,
    id: tunnel.id,
    sequence,
    workspace_id,
    name: tunnel.name,
    type: tunnel.type,
    pool: tunnel.pool ? 1 : 0,
    url: publicUrl(tunnel, tunnelDomain, port ?? parsed.port),
    key_id: tunnel.keyId,
    client_address: tunnel.clientAddress,
    client_version: tunnel.clientVersion || null,
    opened_at: openedAt,
    client_access: tunnel.access ? JSON.stringify(tunnel.access) : null,
    resume_hash: tunnel.resume ?? null,
    session_hash: tunnel.session ?? tunnel.resume ?? null,
    tunnel_id: publicId(workspace_id, tunnel),
    requests,
    bytes_in: bytesIn,
    bytes_out: bytesOut,
    streams,
  }
}

const PORT = /:(\d+)\/?$/
const PORT_MAX = 65_535

function parsePort(url: string): number | undefined {
  const port = Number(PORT.exec(url)?.[1])
  return port >= 1 && port <= PORT_MAX ? port : undefined
}

/**
 * Takes only the scheme and port from the reported URL: the dashboard makes a link of it, which must not lead
 * elsewhere if the credential of an edge is stolen.
 */
function publicUrl(
  { url, type, name, workspace }: ClaimedTunnel,
  tunnelDomain: string,
  port: number | undefined,
): string {
  const scheme = type === 'tcp' ? 'tcp' : url.startsWith('http:') ? 'http' : 'https'
  return `${scheme}://${name}.${workspace}.${tunnelDomain}${port === undefined ? '' : `:${port}`}`
}
