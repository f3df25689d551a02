// Open tunnels of the workspace: list them, read one, close one.
import Type from 'typebox'
import { ClientAccess, Total, TunnelName, TunnelType } from '../edge/tunnel-fields.ts'
import { EdgeName, Id, Instant, InstantOrNull, TextOrNull } from '../fields.ts'
import { operation } from '../operation.ts'
import { cursorRule, NextCursor, PAGING, pageQuery } from './pages.ts'

const TunnelId = {
  ...Id,
  description: 'Identifier of the tunnel.',
  examples: ['tun_01k9x2m4q7r8s9t0v1w2x3y4z5'],
}

/** Without an example, which the API reference would send. */
const NameFilter = { ...TunnelName, description: 'Only tunnels with this name.', examples: undefined }

const exampleTunnel = {
  id: 'tun_01k9x2m4q7r8s9t0v1w2x3y4z5',
  name: 'my-app',
  type: 'http',
  pool: false,
  url: 'https://my-app.acme.tunnels.example.com',
  key: { id: 'tok_01k9x2m4q7r8s9t0v1w2x3y4z5', label: 'ci' },
  edges: [{ id: 'edge_01k9x2m4q7r8s9t0v1w2x3y4z5', name: 'fra-1' }],
  client: { address: '192.0.2.7', version: 'adit 0.1.0' },
  access: { basicAuth: false, allowIp: [] },
  openedAt: '2026-11-15T09:30:00.000Z',
  requests: 12,
  bytesIn: 3400,
  bytesOut: 91000,
  streams: 1,
  closeRequestedAt: null,
}

export const OpenTunnel = Type.Object(
  {
    id: TunnelId,
    name: TunnelName,
    type: TunnelType,
    pool: Type.Boolean({ description: 'Whether it shares the name with open tunnels of the same type.' }),
    url: Type.String({ description: 'Public URL, or address of a TCP tunnel.' }),
    key: Type.Object(
      { id: Id, label: TextOrNull },
      { description: 'The API key that opened it. The label is null if the key is unknown.' },
    ),
    edges: Type.Array(Type.Object({ id: Id, name: EdgeName }), { description: 'The edges that carry it.' }),
    client: Type.Object(
      { address: Type.String({ description: 'IP address.' }), version: TextOrNull },
      { description: 'The tunnel client.' },
    ),
    access: ClientAccess,
    openedAt: { ...Instant, description: 'When it was opened.' },
    requests: Total('Requests so far.'),
    bytesIn: Total('Bytes received so far.'),
    bytesOut: Total('Bytes sent so far.'),
    streams: Total('Requests and connections in progress.'),
    closeRequestedAt: InstantOrNull('When somebody asked to close it; null if nobody has.'),
  },
  { title: 'Tunnel' },
)

export const listTunnels = operation({
  id: 'tunnels.list',
  method: 'GET',
  path: '/tunnels',
  access: 'key',
  summary: 'List open tunnels',
  description: `Lists the open tunnels of the workspace by name, as their edges report them every few seconds. ${PAGING}`,
  query: Type.Object({
    name: Type.Optional(NameFilter),
    ...pageQuery(Type.String({ pattern: '^[a-z0-9-]{1,63}\\.tun_[0-9a-z]{10,40}$', ...cursorRule })),
  }),
  response: {
    status: 200,
    description: 'The open tunnels.',
    schema: Type.Object({ tunnels: Type.Array(OpenTunnel), next: NextCursor }, { title: 'TunnelList' }),
    example: { tunnels: [exampleTunnel], next: null },
  },
  tool: { name: 'list_tunnels', title: 'List open tunnels', hints: { readOnly: true } },
})

export const readTunnel = operation({
  id: 'tunnels.read',
  method: 'GET',
  path: '/tunnels/{id}',
  access: 'key',
  summary: 'Get an open tunnel',
  description: 'Returns an open tunnel of the workspace. A tunnel that was closed is 404.',
  params: Type.Object({ id: TunnelId }),
  response: { status: 200, description: 'The tunnel.', schema: OpenTunnel, example: exampleTunnel },
  faults: ['not_found'],
  tool: { name: 'get_tunnel', title: 'Get an open tunnel', hints: { readOnly: true } },
})

const CLOSING =
  'Closes an open tunnel, with the requests and connections in progress. Its client exits and shows which API ' +
  'key closed it. Anyone with an API key of the workspace can open the tunnel again: to prevent that, revoke ' +
  'the key.'

export const closeTunnel = operation({
  id: 'tunnels.close',
  method: 'DELETE',
  path: '/tunnels/{id}',
  access: 'key',
  audit: ['tunnel.closed'],
  summary: 'Close a tunnel',
  description:
    `${CLOSING} Responds when no edge carries the tunnel: usually within a second, or within 25 seconds if an ` +
    'edge cannot be reached. 503 if an edge still reports it after 27 seconds. 403 on a server that runs API variant B, in which keys only read, ' +
    'and for the personal key of a member if somebody else opened the tunnel.',
  params: Type.Object({ id: TunnelId }),
  response: {
    status: 200,
    description: 'The tunnel is closed.',
    schema: Type.Object({ id: TunnelId, closed: Type.Literal(true) }, { title: 'ClosedTunnel' }),
    example: { id: exampleTunnel.id, closed: true },
  },
  faults: ['forbidden', 'not_found'],
  tool: {
    name: 'close_tunnel',
    title: 'Close a tunnel',
    description: `${CLOSING} Its users lose the public URL, so check the id.`,
    hints: { destructive: true, idempotent: true },
  },
})
