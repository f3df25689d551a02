// The edge of a tunnel, and whether the API key may be sent to it.
import { isIP } from 'node:net'
import { isLoopbackHost } from '../../lib/net/hostname.ts'
import { clientEnvironment } from '../../server/config/environment.ts'
import { toEdgeUrl } from '../../tunnel-client/edge-url.ts'
import { EDGES_MAX as TUNNEL_EDGES_MAX } from '../../tunnel-client/run.ts'
import { type ApiAccess, type ApiInput, findAccess, findKey, isLoopback, parseUrl, withApi } from '../api.ts'
import { CommandError, UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { editProfiles, type Profile } from '../session/profiles.ts'

/** Confirmed edges kept per profile; the oldest is dropped. */
const EDGES_MAX = 20

export interface EdgeInput extends ApiInput {
  edge: string | undefined
  edges: string | undefined
}

interface EdgeAccess extends Pick<ApiAccess, 'apiKey' | 'keySource'> {
  edge: string
  /** To how many edges the tunnel keeps a connection; undefined for the default. */
  edges: number | undefined
  /** No URL is set for the edge: it is expected at the tunnel domain. */
  fromDomain: boolean
}

/** The edge of --edge or ADIT_EDGE_URL, or the one that the control plane names. */
export async function findEdge(input: EdgeInput, io: Io): Promise<EdgeAccess> {
  const edges = parseEdges(input.edges)
  const edgeUrl = input.edge ?? clientEnvironment().edgeUrl
  if (edgeUrl !== undefined) {
    const { apiKey, keySource, chosen } = findKey(input)
    const edge = parseUrl(edgeUrl, 'edge')
    if (keySource && chosen) await requireTrusted(edge, keySource.profile, chosen, io)
    return { edge, edges, apiKey, keySource, fromDomain: false }
  }
  const { baseUrl, apiKey, keySource } = findAccess(input)
  const named = await withApi(input, (client) => client.edge.find())
  try {
    return { ...toEdgeUrl(named, baseUrl), edges, apiKey, keySource }
  } catch (error) {
    throw new CommandError('edge_url', `${(error as Error).message} To use another edge, pass --edge.`)
  }
}

function parseEdges(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const edges = /^\d$/.test(text) ? Number(text) : 0
  if (edges < 1 || edges > TUNNEL_EDGES_MAX)
    throw new UsageError(`Invalid --edges "${text}" (expected 1 to ${TUNNEL_EDGES_MAX}).`)
  return edges
}

/**
 * The key of a profile belongs to a server. An edge of that server's host may have it, also without TLS if
 * the server has none; so may an edge of this machine. The user confirms another one, once.
 */
async function requireTrusted(edge: string, name: string, profile: Profile, io: Io): Promise<void> {
  const [url, server] = [new URL(edge), new URL(profile.url)]
  const isDowngrade = url.protocol === 'http:' && server.protocol === 'https:'
  if (isLoopback(url) || profile.edges?.includes(edge)) return
  if (url.hostname === server.hostname && !isDowngrade) return
  const key = `The API key of profile "${name}" is for ${profile.url}`
  const destination = url.protocol === 'http:' ? `${edge}, without encryption` : edge
  if (!io.interactive)
    throw new UsageError(
      `${key}, and is not sent to ${destination}. Leave out --edge to use the edge of the server, set ADIT_API_KEY, ` +
        'or run the command once in a terminal to confirm this edge.',
    )
  if (!(await io.confirm(`${key}. Send it to ${destination}?`)))
    throw new UsageError('The edge was not confirmed.')
  await editProfiles((now) => {
    const current = now.profiles[name]
    // `adit logout` or `adit login` ran meanwhile: the user confirmed the edge for the earlier key only.
    if (current?.url !== profile.url || current.apiKey !== profile.apiKey) return now
    const edges = [...(current.edges ?? []).filter((other) => other !== edge), edge].slice(-EDGES_MAX)
    return { ...now, profiles: { ...now.profiles, [name]: { ...current, edges } } }
  })
}

/** Requests of such a tunnel would return to the edge, which would send them to the tunnel again. */
export function isEdgeItself(targetUrl: string, edgeUrl: string): boolean {
  const [target, edge] = [URL.parse(targetUrl), new URL(edgeUrl)]
  if (!target || !/^https?:$/.test(target.protocol) || readPort(target) !== readPort(edge)) return false
  const names = [target, edge].map(({ hostname }) => hostname.replace(/^\[(.*)\]$/, '$1'))
  // A name such as localhost is any loopback address.
  return names[0] === names[1] || (names.every(isLoopbackHost) && names.some((name) => isIP(name) === 0))
}

const readPort = ({ port, protocol }: URL) => port || (protocol === 'https:' ? '443' : '80')
