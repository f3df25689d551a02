// Shell commands shown in the dashboard, with the URL of this server and the values of the workspace.
import { clientCommands, shellQuote } from '../../../src/lib/client-commands.ts'
import { CLIENT_PACKAGE } from '../../../src/lib/client-package.ts'
import { serverUrl } from '../paths.ts'

export const client = clientCommands(serverUrl)

/** The package comes from this server: a registry may have another one of this name. */
export const npmCommand = `npm install -g ${shellQuote(`${serverUrl}/install/${CLIENT_PACKAGE}.tgz`)}`

/** The default of `adit edge`. The server does not know the one that it uses. */
export const EDGE_PORT = 8081

/** For the operator. `adit admin` needs the database, and prints nothing but the credential to stdout. */
export const edgeCommands = [
  'export ADIT_EDGE_KEY=$(adit admin edge create edge-1)',
  `ADIT_URL=${shellQuote(serverUrl)} adit edge`,
].join('\n')

export const provisionCommand = (slug: string): string => `adit admin workspace provision ${slug}`

export const curlCommand = (apiKey: string): string =>
  `curl -H "Authorization: Bearer ${apiKey}" ${shellQuote(`${serverUrl}/api/v1/workspace`)}`

/**
 * Public URL of a tunnel. Undefined under localhost: no proxy is in front of the edge there, so the URL has
 * the port of the edge, which the dashboard does not know.
 */
export function tunnelUrl(host: string): string | undefined {
  const isLocal = /(^|\.)localhost$/.test(host)
  return isLocal ? undefined : `${location.protocol}//${host}`
}
