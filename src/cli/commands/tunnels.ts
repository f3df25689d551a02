// Commands that open tunnels, run an edge, and manage the keys of an edge without a control plane.
import { edgeSettings } from '../../server/config/edge.ts'
import { TOKENS_FILE } from '../../server/config/environment.ts'
import { settings } from '../../server/config/server.ts'
import { type Command, command } from '../command.ts'
import { API_ACCESS, apiOptions, labelOption } from './options.ts'

const group = 'Tunnels'
const tokensFileOption = { value: '<path>', summary: `tokens file (default: ./${TOKENS_FILE})` } as const

const EDGE_ACCESS =
  'The edge is --edge or ADIT_EDGE_URL, or else the one at the tunnel domain of the workspace; for ' +
  `tunnels under localhost that is http://127.0.0.1:${edgeSettings.ADIT_EDGE_PORT.fallback}.`
const STOPPING =
  'Ctrl-C or SIGTERM stops it: what is in progress has 10 seconds to complete. A second Ctrl-C stops at ' +
  'once.'
const BASIC_AUTH =
  'With --basic-auth, requests need a user and a password. The password is asked for, or read from standard ' +
  'input; or set ADIT_TUNNEL_BASIC_AUTH to user:password. --basic-auth user:password works too, but other ' +
  'users of this machine can read it in the list of processes.'
const ALLOW_IP =
  'With --allow-ip, all other addresses are rejected. Behind a proxy, X-Forwarded-For has the address. An edge ' +
  'trusts proxies on its own machine, so it rejects requests of that machine without X-Forwarded-For: to try ' +
  'it at a local edge, send one, e.g. curl -H "X-Forwarded-For: 203.0.113.7" ….'
const SERVE =
  'With --serve, the tunnel leads to the files of a folder instead of a server: a list of files or index.html, ' +
  'without files whose names begin with a dot and without links that leave the folder. A folder with data of ' +
  'Adit is rejected.'
const KEY_OF_PROFILE =
  'The key of a profile is sent to edges on this machine or on the host of its server; another edge has to be ' +
  'confirmed once.'
const tunnelOptions = {
  name: { value: '<name>', summary: 'first label of the host name (default: random)' },
  pool: { summary: 'share the name with other clients of the workspace' },
  'basic-auth': { value: '<user>', summary: 'require this user and a password, which is asked for' },
  'allow-ip': {
    value: '<cidr>',
    summary: 'allow only this address or network, e.g. 203.0.113.0/24',
    repeatable: true,
  },
  edge: { value: '<url>', summary: 'edge (default: ADIT_EDGE_URL)' },
  ...apiOptions,
} as const

export const tunnelCommands: readonly Command[] = [
  command(
    {
      name: 'tunnel',
      group,
      summary: 'expose a local server or a folder at a public URL',
      details:
        'The target is a port of this machine, or host:port:\n' +
        '  adit tunnel 3000\n' +
        '  adit tunnel 192.168.1.20:8080 --name my-app\n' +
        '  adit tunnel --serve ./public\n' +
        `${SERVE}\n` +
        'Prints the public URL, then a line for each request, until it is stopped. Reconnects ' +
        'automatically. With --json, each line is an event: open, request or lost.\n' +
        `${STOPPING}\n` +
        `${BASIC_AUTH}\n` +
        `${ALLOW_IP}\n` +
        'For servers that do not use HTTP, see `adit tunnel tcp`.\n' +
        `${EDGE_ACCESS} ${KEY_OF_PROFILE}\n\n${API_ACCESS}`,
      optionalArgument: 'target',
      options: {
        serve: { value: '<folder>', summary: 'serve the files of this folder instead of a target' },
        ...tunnelOptions,
      },
    },
    async (input, io) => (await import('../tunnels/tunnel.ts')).tunnel('http', input, io),
  ),
  command(
    {
      name: 'tunnel tcp',
      group,
      summary: 'expose a local TCP server at a public port',
      details:
        'The target is a port of this machine, or host:port:\n' +
        '  adit tunnel tcp 5432\n' +
        'Prints the public address, e.g. tcp://db.acme.tunnels.example.com:20417, then a line for each connection ' +
        'when it is closed, until it is stopped. Reconnects automatically. With --json, each line is an ' +
        'event: open, connection or lost.\n' +
        `${STOPPING}\n` +
        `${EDGE_ACCESS} ${KEY_OF_PROFILE}\n\n${API_ACCESS}`,
      arguments: ['target'],
      options: { ...tunnelOptions, 'basic-auth': { ...tunnelOptions['basic-auth'], hidden: true } },
    },
    async (input, io) => (await import('../tunnels/tunnel.ts')).tunnel('tcp', input, io),
  ),
  command(
    {
      name: 'edge',
      group,
      summary: 'run an edge, the public end of tunnels',
      details:
        'Verifies API keys with the control plane at ADIT_URL and reports usage to it. ADIT_EDGE_KEY is ' +
        'the credential of this edge; create one there with:\n' +
        '  adit admin edge create edge-1\n' +
        'With --tokens-file it verifies keys against a file and needs no control plane.',
      options: {
        'tokens-file': { value: '<path>', summary: 'verify keys against this file, without a control plane' },
      },
      environment: {
        ADIT_URL: { summary: 'URL of the control plane', fallback: '' },
        ADIT_EDGE_KEY: { summary: 'credential of this edge', fallback: '' },
        ...edgeSettings,
        ADIT_TUNNEL_DOMAIN: {
          ...settings.ADIT_TUNNEL_DOMAIN,
          summary: 'domain of its tunnels; used with --tokens-file only',
        },
        ADIT_METRICS_PORT: settings.ADIT_METRICS_PORT,
        ADIT_METRICS_HOST: settings.ADIT_METRICS_HOST,
        ADIT_LOG_LEVEL: settings.ADIT_LOG_LEVEL,
      },
    },
    async (input, io) => (await import('../tunnels/edge.ts')).edge(input, io),
  ),
  command(
    {
      name: 'tokens-file add',
      group,
      summary: 'create a key for an edge without a control plane',
      details:
        'Prints only the key to standard output; it is not shown again. The file stores its SHA-256. A ' +
        'running edge reloads the file within a second.',
      arguments: ['workspace'],
      options: { label: labelOption, file: tokensFileOption },
    },
    async ({ file = TOKENS_FILE, ...input }, io) =>
      (await import('../tunnels/tokens-file.ts')).add({ ...input, file }, io),
  ),
  command(
    {
      name: 'tokens-file list',
      group,
      summary: 'list the keys in a tokens file',
      options: { file: tokensFileOption },
    },
    async ({ file = TOKENS_FILE }, io) => (await import('../tunnels/tokens-file.ts')).list(file, io),
  ),
  command(
    {
      name: 'tokens-file remove',
      group,
      summary: 'remove a key from a tokens file',
      details: 'A running edge rejects the key, and closes the tunnels it opened, within a second.',
      arguments: ['id'],
      options: { file: tokensFileOption },
    },
    async ({ id, file = TOKENS_FILE }, io) =>
      (await import('../tunnels/tokens-file.ts')).remove(id, file, io),
  ),
]
