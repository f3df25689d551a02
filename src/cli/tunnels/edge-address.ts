// The edge of a tunnel, and whether the API key may be sent to it.
import { AditError, createClient } from '../../client/index.ts'
import { edgeSettings } from '../../server/config/edge.ts'
import { clientEnvironment } from '../../server/config/environment.ts'
import {
  type ApiAccess,
  type ApiInput,
  findAccess,
  findKey,
  isLoopback,
  parseUrl,
  toCommandError,
} from '../api.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { editProfiles, type Profile } from '../session/profiles.ts'

const LOCAL_EDGE = `http://127.0.0.1:${edgeSettings.ADIT_EDGE_PORT.fallback}`
/** Confirmed edges kept per profile; the oldest is dropped. */
const EDGES_MAX = 20

export interface EdgeInput extends ApiInput {
  edge: string | undefined
}

interface EdgeAccess extends Pick<ApiAccess, 'apiKey' | 'keySource'> {
  edge: string
  isGuessed: boolean
}

/** The edge of --edge or ADIT_EDGE_URL, or the tunnel domain of the workspace, which resolves to an edge. */
export async function findEdge(input: EdgeInput, io: Io): Promise<EdgeAccess> {
  const edgeUrl = input.edge ?? clientEnvironment().edgeUrl
  if (edgeUrl !== undefined) {
    const { apiKey, keySource, chosen } = findKey(input)
    const edge = parseUrl(edgeUrl, 'edge')
    if (keySource && chosen) await requireTrusted(edge, keySource.profile, chosen, io)
    return { edge, apiKey, keySource, isGuessed: false }
  }
  const access = findAccess(input)
  try {
    const workspace = await createClient(access).workspace.read()
    const { tunnelBase, exampleUrl = '' } = workspace as { tunnelBase?: string; exampleUrl?: string }
    const base = tunnelBase ?? String(exampleUrl).replace(/^(https?:\/\/)?[^.]+\./, '')
    const isLocal = /(^|\.)localhost$/.test(base)
    const { protocol } = new URL(access.baseUrl)
    const edge = isLocal ? LOCAL_EDGE : parseUrl(`${protocol}//${base}`, 'edge')
    return { ...access, edge, isGuessed: true }
  } catch (error) {
    throw error instanceof AditError ? toCommandError(error, access) : error
  }
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
