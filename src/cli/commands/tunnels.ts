// Commands that open tunnels.
import { edgeSettings } from '../../server/config/edge.ts'
import { type Command, command } from '../command.ts'
import { API_ACCESS, apiOptions } from './options.ts'

const group = 'Tunnels'

const EDGE_ACCESS =
  'Connects to the edge that your server names; --edge or ADIT_EDGE_URL overrides it. If the ' +
  'operator has set no URL for it, this is the tunnel domain of your workspace, or ' +
  `http://127.0.0.1:${edgeSettings.ADIT_EDGE_PORT.fallback} if that domain is under localhost.`
const STOPPING =
  'Press Ctrl-C (or send SIGTERM) to stop: what is in progress gets 10 seconds to finish. ' +
  'Press Ctrl-C again to stop at once.'
const BASIC_AUTH =
  'With --basic-auth, visitors need a user name and a password. Adit asks you for the ' +
  'password, or reads it from standard input. You can also set ADIT_TUNNEL_BASIC_AUTH to ' +
  'user:password. --basic-auth user:password works too, but other users of this machine can ' +
  'see it in the process list.'
const ALLOW_IP =
  'With --allow-ip, the edge rejects all other addresses. Behind a proxy, it reads the ' +
  'address from X-Forwarded-For. A local edge takes requests from its own machine for those ' +
  'of a proxy and rejects them without that header; to try it, send one: curl -H ' +
  '"X-Forwarded-For: 203.0.113.7" …'
const HOST_HEADER =
  'Development servers such as Vite reject hosts that they do not know. With --host-header ' +
  'rewrite, the local server gets requests as if they were sent to the target itself: Host, ' +
  'Origin, Referer, X-Forwarded-Host and X-Forwarded-Proto name the target, and Location is ' +
  'mapped back to the tunnel. With a host instead of "rewrite", they name that host.'
const SERVE =
  'With --serve, the tunnel serves the files of a folder: index.html, or a list of files. It ' +
  'leaves out files whose names begin with a dot and links that leave the folder, and rejects ' +
  'a folder with data of Adit.'
const KEY_OF_PROFILE =
  'The key of a profile is sent only to edges on this machine or on the host of its server. ' +
  'Any other edge needs your confirmation once.'
const tunnelOptions = {
  name: { value: '<name>', summary: 'name of the tunnel, the first part of its host name (default: random)' },
  pool: { summary: 'let several clients share this name and its traffic' },
  'basic-auth': { value: '<user>', summary: 'require this user name and a password, which Adit asks for' },
  'allow-ip': {
    value: '<cidr>',
    summary: 'allow only this address or network, e.g. 203.0.113.0/24',
    repeatable: true,
  },
  edge: { value: '<url>', summary: 'URL of the edge (default: ADIT_EDGE_URL, or the edge of the server)' },
  ...apiOptions,
} as const

export const tunnelCommands: readonly Command[] = [
  command(
    {
      name: 'tunnel',
      group,
      summary: 'expose a local server or a folder at a public URL',
      details:
        'The target is a port of this machine, or host:port:\n\n' +
        '  adit tunnel 3000\n' +
        '  adit tunnel 192.168.1.20:8080 --name my-app\n' +
        '  adit tunnel --serve ./public\n\n' +
        `${SERVE}\n\n` +
        `${HOST_HEADER}\n\n` +
        'Prints the public URL, then a line for each request. Reconnects automatically. With ' +
        '--json, each line is an event: open, request or lost.\n\n' +
        `${STOPPING}\n\n` +
        `${BASIC_AUTH}\n\n` +
        `${ALLOW_IP}\n\n` +
        'For servers that do not use HTTP, see `adit tunnel tcp`.\n\n' +
        `${EDGE_ACCESS} ${KEY_OF_PROFILE}\n\n` +
        API_ACCESS,
      optionalArgument: 'target',
      options: {
        serve: { value: '<folder>', summary: 'serve the files of this folder instead of a target' },
        'host-header': {
          value: '<rewrite|host>',
          summary: 'send this Host header to the local server; "rewrite" is that of the target',
        },
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
        'For databases, SSH and other servers that do not use HTTP. The target is a port of this ' +
        'machine, or host:port:\n\n' +
        '  adit tunnel tcp 5432\n\n' +
        'Prints the public address, for example tcp://db.acme.tunnels.example.com:20417, then a ' +
        'line for each connection that has closed. The name keeps its port. Reconnects ' +
        'automatically. With --json, each line is an event: open, connection or lost.\n\n' +
        `${STOPPING}\n\n` +
        `${EDGE_ACCESS} ${KEY_OF_PROFILE}\n\n` +
        API_ACCESS,
      arguments: ['target'],
      options: { ...tunnelOptions, 'basic-auth': { ...tunnelOptions['basic-auth'], hidden: true } },
    },
    async (input, io) => (await import('../tunnels/tunnel.ts')).tunnel('tcp', input, io),
  ),
]
