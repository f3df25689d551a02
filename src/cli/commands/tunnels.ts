// Commands that open tunnels.
import { command, inGroup } from '../command.ts'
import { apiOptions, yesOption } from './options.ts'

const STOPPING = 'Reconnects automatically. Ctrl-C stops it: what is in progress gets 10 seconds to finish.'
const EDGE_SELECTION = 'The Adit server chooses the edge; --edge or ADIT_EDGE_URL overrides that.'
const otherFlags = {
  port: 'The port is an argument: `adit tunnel 3000`.',
  p: 'The port is an argument: `adit tunnel 3000`.',
  subdomain: 'Use --name.',
  hostname: 'Use --name.',
} as const
const TCP_PORT = 'The port is an argument: `adit tunnel tcp 5432`.'
const nameOptions = {
  name: { value: '<name>', summary: 'name of the tunnel, the first part of its host name (default: random)' },
  'basic-auth': { value: '<user>', summary: 'require this user name and a password, which Adit asks for' },
  'allow-ip': {
    value: '<cidr>',
    summary: 'allow only this address or network, e.g. 203.0.113.0/24',
    repeatable: true,
  },
} as const
const edgeOptions = {
  pool: { summary: 'let several clients share this name and its traffic' },
  edge: { value: '<url>', summary: 'URL of the edge (default: ADIT_EDGE_URL, or the edge of the server)' },
  edges: { value: '<n>', summary: 'keep connections to this many edges, 1 to 4 (default: 2)' },
  ...apiOptions,
} as const

export const tunnelCommands = inGroup('Tunnels', [
  command({
    name: 'tunnel',
    summary: 'expose a local server or a folder at a public URL',
    details:
      'The target is a port of this machine, host:port, a URL, or a Unix socket:\n\n' +
      '  adit tunnel 3000\n' +
      '  adit tunnel 3000 --name my-app --basic-auth ann\n' +
      '  adit tunnel 192.168.1.20:8080\n' +
      '  adit tunnel https://localhost:8443 --insecure\n' +
      '  adit tunnel unix:/run/app.sock\n' +
      '  adit tunnel --serve ./public\n\n' +
      'Prints the public URL, a line for each completed request, and what is wrong if the local server ' +
      `does not respond. ${STOPPING} For servers that do not use HTTP, see \`adit tunnel tcp\`. ${EDGE_SELECTION} ` +
      'Without a target, it uses adit.json.',
    otherFlags,
    optionalArgument: 'target',
    options: {
      ...nameOptions,
      serve: { value: '<folder>', summary: 'serve the files of this folder instead of a target' },
      insecure: { summary: 'accept any certificate of an https:// target' },
      ca: { value: '<file>', summary: 'trust the certificates in this file for an https:// target' },
      'host-header': {
        value: '<rewrite|host>',
        summary: 'send this Host header to the local server; "rewrite" sends the host of the target',
      },
      inspect: { summary: 'record requests on this machine, for `adit requests`' },
      'mask-header': {
        value: '<name>',
        summary: 'with --inspect, mask the values of this header too',
        repeatable: true,
      },
      ...edgeOptions,
      yes: { summary: 'publish what adit.json names, without confirmation' },
    },
    run: async (input, io) => {
      const { tunnel } = await import('../tunnels/tunnel.ts')
      if (input.target !== undefined || input.serve !== undefined) return tunnel('http', input, io)
      const { fromProject } = await import('../tunnels/project/defaults.ts')
      const { type, ...tunnelInput } = await fromProject(input, io)
      return tunnel(type, tunnelInput, io)
    },
  }),
  command({
    name: 'start',
    summary: 'open the tunnels of adit.json, all or by name',
    details:
      'The file is in this folder, or in a folder above it, up to the root of the repository:\n\n' +
      '  { "tunnels": { "web": { "target": 3000 }, "api": { "target": 4000 } } }\n\n' +
      'Shows a table of the tunnels, and a line for each request below it. With --json, each line ' +
      'is an event with the name of its tunnel. Asks before it publishes anything but ports of ' +
      `this machine; scripts need --yes. ${STOPPING} ${EDGE_SELECTION}`,
    restArguments: 'names',
    options: { yes: yesOption, edge: edgeOptions.edge, edges: edgeOptions.edges, ...apiOptions },
    run: async (input, io) => (await import('../tunnels/start.ts')).start(input, io),
  }),
  command({
    name: 'tunnel tcp',
    summary: 'expose a local TCP server at a public port',
    details:
      'For databases, SSH and other servers that do not use HTTP. The target is a port of this ' +
      'machine, or host:port:\n\n' +
      '  adit tunnel tcp 5432\n\n' +
      'Prints the public address, for example tcp://db.acme.tunnels.example.com:20417, then a ' +
      `line for each connection that has closed. The name keeps its port. ${STOPPING} ${EDGE_SELECTION}`,
    otherFlags: {
      ...otherFlags,
      port: TCP_PORT,
      p: TCP_PORT,
      inspect: 'Only requests of HTTP tunnels are recorded.',
    },
    arguments: ['target'],
    options: {
      ...nameOptions,
      'basic-auth': { ...nameOptions['basic-auth'], hidden: true },
      ...edgeOptions,
    },
    run: async (input, io) => (await import('../tunnels/tunnel.ts')).tunnel('tcp', input, io),
  }),
])
