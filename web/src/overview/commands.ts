// Shell commands shown in the dashboard, with the URL of this server and the values of the workspace.
import { serverUrl } from '../paths.ts'

/** In a clone `adit` is not on the PATH. */
export const aliasCommand = "alias adit='npx --no-install adit'"

/** The command has no key: `adit login` creates one in the browser or prompts for it. */
export const loginCommand = `adit login --url ${serverUrl}`

export const LOCAL_PORT = 3000
/** The default of `adit edge`. The server does not know the one that it uses. */
export const EDGE_PORT = 8081
const TUNNEL_NAME = 'my-app'
export const tunnelCommand = `adit tunnel ${LOCAL_PORT} --name ${TUNNEL_NAME}`

/** For the operator. `adit admin` needs the database, and prints nothing but the credential to stdout. */
export const edgeCommands = [
  'export ADIT_EDGE_KEY=$(adit admin edge create edge-1)',
  `ADIT_URL=${serverUrl} adit edge`,
].join('\n')

export const provisionCommand = (slug: string): string => `adit admin workspace provision ${slug}`

export const curlCommand = (apiKey: string): string =>
  `curl -H "Authorization: Bearer ${apiKey}" ${serverUrl}/api/v1/workspace`

/**
 * Public URL of a tunnel. Undefined under localhost: no proxy is in front of the edge there, so the URL has
 * the port of the edge, which the dashboard does not know.
 */
export function tunnelUrl(host: string): string | undefined {
  const isLocal = /(^|\.)localhost$/.test(host)
  return isLocal ? undefined : `${location.protocol}//${host}`
}
