// The environment of commands, apart from the settings of servers.
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { type FindProxy, parseProxies } from '../../lib/net/proxy/settings.ts'
import { edgeSettings } from './edge.ts'
import { settings } from './server.ts'
import { ConfigError } from './setting.ts'

/** Variables of commands other than `adit serve`. */
const otherVariables = new Set([
  'ADIT_URL',
  'ADIT_API_KEY',
  'ADIT_EDGE_KEY',
  'ADIT_EDGE_URL',
  'ADIT_TUNNEL_BASIC_AUTH',
  ...Object.keys(edgeSettings),
])

/** ADIT_ variables that no command reads: most likely typos. */
export function unknownSettings(environment: NodeJS.ProcessEnv = process.env): string[] {
  return Object.keys(environment).filter(
    (name) => name.startsWith('ADIT_') && !Object.hasOwn(settings, name) && !otherVariables.has(name),
  )
}

/** The API, the key for it, an edge, and the user and password for a tunnel. */
export function clientEnvironment() {
  const { ADIT_URL, ADIT_API_KEY, ADIT_EDGE_URL, ADIT_TUNNEL_BASIC_AUTH } = process.env
  return {
    url: ADIT_URL?.trim() || undefined,
    apiKey: ADIT_API_KEY?.trim() || undefined,
    edgeUrl: ADIT_EDGE_URL?.trim() || undefined,
    tunnelBasicAuth: ADIT_TUNNEL_BASIC_AUTH || undefined,
  }
}

/** The proxies of connections to servers and edges. */
export function readProxies(): FindProxy {
  try {
    return parseProxies(process.env)
  } catch (error) {
    throw new ConfigError(`Invalid configuration:\n  ${(error as Error).message}`)
  }
}

/** The file is in the user's configuration folder (XDG). */
export function profilesPath(environment: NodeJS.ProcessEnv = process.env): string {
  const { XDG_CONFIG_HOME, HOME } = environment
  return join(XDG_CONFIG_HOME || join(HOME || homedir(), '.config'), 'adit', 'profiles.json')
}

/**
 * The sockets of tunnel clients that record requests: in the user's runtime folder (XDG), if there is one.
 */
export function inspectorFolder(environment: NodeJS.ProcessEnv = process.env): string {
  const { XDG_RUNTIME_DIR } = environment
  return XDG_RUNTIME_DIR
    ? join(XDG_RUNTIME_DIR, 'adit')
    : join(dirname(profilesPath(environment)), 'inspector')
}

/** An edge without a control plane reads this file in its working directory. */
export const TOKENS_FILE = 'tokens.json'

/** The first descriptor after those of the standard streams and of the channel to the primary. */
const FIRST_DESCRIPTOR = 4

/** Tells a worker how many sockets it inherits. */
export const workerEnvironment = (sockets: number) => ({ ADIT_WORKER_SOCKETS: String(sockets) })

/** The descriptors of the sockets that a worker inherits. */
export const inheritedDescriptors = (): number[] =>
  Array.from({ length: Number(process.env.ADIT_WORKER_SOCKETS) }, (_, index) => FIRST_DESCRIPTOR + index)

/** For the edge that `adit serve --edge` starts. It has no metrics listener: the server uses that port. */
export const localEdgeEnvironment = (controlPlaneUrl: string, credential: string) => ({
  ...process.env,
  ADIT_URL: controlPlaneUrl,
  ADIT_EDGE_KEY: credential,
  ADIT_METRICS_PORT: '',
  // It connects to the server on this machine only: a proxy would read its credential.
  NO_PROXY: '*',
  no_proxy: '*',
  // Visitors reach the edge, so it has no secret of the server.
  ADIT_DATABASE_URL: undefined,
  ADIT_SECRET: undefined,
  ADIT_OIDC_CLIENT_SECRET: undefined,
  ADIT_SMTP_URL: undefined,
  PGPASSWORD: undefined,
})

/** npm does not forward signals, so a child of npm has to notice that npm has exited. */
export const isStartedByNpm = (): boolean => process.env.npm_lifecycle_event !== undefined

/** The command to print in messages: in a clone, where npm starts the program, it is not on the PATH. */
export function commandName(): string {
  const { npm_lifecycle_event: script, npm_command: command } = process.env
  return script === 'start' || command === 'exec' ? 'npx --no-install adit' : 'adit'
}

/** Whether a browser that this process opens is shown to its user: not over SSH, or without a display. */
export function hasDesktop(): boolean {
  const { SSH_CONNECTION, SSH_TTY, DISPLAY, WAYLAND_DISPLAY } = process.env
  if (SSH_CONNECTION || SSH_TTY) return false
  return process.platform === 'darwin' || process.platform === 'win32' || Boolean(DISPLAY || WAYLAND_DISPLAY)
}

export const isDumbTerminal = (): boolean => process.env.TERM === 'dumb'

/** Node also reads FORCE_COLOR and decides by its value, which can turn colors off. */
export const forcesColor = (): boolean => process.env.FORCE_COLOR !== undefined
