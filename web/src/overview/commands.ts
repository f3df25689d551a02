// Shell commands shown in the dashboard, with the URL of this server and the values of the workspace.
import { clientCommands, shellQuote } from '../../../src/lib/client-commands.ts'
import { CLIENT_PACKAGE } from '../../../src/lib/client-package.ts'
import { EDGE_PORT } from '../../../src/lib/net/edge-port.ts'
import type { Output } from '../api.ts'
import { serverUrl } from '../paths.ts'

export const client = clientCommands(serverUrl)

/** The package comes from this server: a registry may have another one of this name. */
export const npmCommand = `npm install -g ${shellQuote(`${serverUrl}/install/${CLIENT_PACKAGE}.tgz`)}`

export const provisionCommand = (slug: string): string => `adit admin workspace provision ${slug}`

export const curlCommand = (apiKey: string): string =>
  `curl -H "Authorization: Bearer ${apiKey}" ${shellQuote(`${serverUrl}/api/v1/workspace`)}`

const isLocal = (host: string): boolean => /(^|\.)localhost$/.test(host)
const localEdge = `http://127.0.0.1:${EDGE_PORT}`

type Workspace = Pick<Output<'workspace.read'>, 'slug' | 'tunnelBase' | 'edgeUrl'>

/** Commands of the operator: `adit admin` needs the database, and prints only the credential to stdout. */
export function edgeCommands({ slug, tunnelBase }: Workspace): string {
  const tunnelDomain = tunnelBase.slice(slug.length + 1)
  const url = isLocal(tunnelDomain) ? localEdge : `${location.protocol}//${tunnelDomain}`
  return [
    `export ADIT_EDGE_KEY=$(adit admin edge create edge-1 --url ${url})`,
    `ADIT_URL=${shellQuote(serverUrl)} adit edge`,
  ].join('\n')
}

/**
 * The public URL of an HTTP tunnel. It has the scheme and port of the edge, which serves visitors and clients
 * on one port. If the URL of the edge is not known, the proxy of a dashboard with https is that of the edge.
 */
export function tunnelUrl(host: string, { edgeUrl }: Workspace): string {
  const isDirect = isLocal(host) && location.protocol === 'http:'
  const { protocol, port } = new URL(edgeUrl ?? (isDirect ? localEdge : `${location.protocol}//${host}`))
  return `${protocol}//${host}${port && `:${port}`}`
}

/** Whether clients connect to the default port of an edge on their own machine. */
export const usesDefaultPort = ({ tunnelBase, edgeUrl }: Workspace): boolean =>
  edgeUrl === null && isLocal(tunnelBase)
