// Open tunnels of a workspace, the edges that carry them, and its tunnel names with their access rules.
import Type from 'typebox'
import { AllowedNetworks, BasicAuthPassword, BasicAuthUser } from '../edge/access-rules.ts'
import { ClientAccess, TunnelName, TunnelType } from '../edge/tunnel-fields.ts'
import { EdgeName, HostName, Id, Instant, InstantOrNull } from '../fields.ts'
import { operation, STRICT } from '../operation.ts'
import { InWorkspace } from './members.ts'

const Integer = (description: string) => Type.Integer({ minimum: 0, description })
const TextOrNull = (description: string) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], description })

const exampleTunnel = {
  id: 'tun_01k9x2m4q7r8s9t0v1w2x3y4z5',
  name: 'my-app',
  type: 'http',
  pool: false,
  url: 'https://my-app.acme.tunnels.example.com',
  key: { id: 'tok_01k9x2m4q7r8s9t0v1w2x3y4z5', label: 'ci' },
  edge: { id: 'edge_01k9x2m4q7r8s9t0v1w2x3y4z5', name: 'fra-1' },
  client: { address: '192.0.2.7', version: 'adit/0.1.0' },
  access: { basicAuth: true, allowIp: ['192.0.2.0/24'] },
  openedAt: '2026-11-15T10:02:11.000Z',
  requests: 12,
  bytesIn: 3400,
  bytesOut: 91000,
  streams: 2,
  closeRequestedAt: null,
}

const OpenTunnel = Type.Object(
  {
    id: Id,
    name: TunnelName,
    type: TunnelType,
    pool: Type.Boolean({ description: 'Whether its name may be shared with other tunnels.' }),
    url: Type.String({ description: 'Public address.' }),
    key: Type.Object({ id: Id, label: TextOrNull('Label of the API key; null if it is unknown.') }),
    edge: Type.Object({ id: Id, name: EdgeName }),
    client: Type.Object({
      address: Type.String({ description: 'IP address of the tunnel client.' }),
      version: TextOrNull('Name and version of the tunnel client; null if unknown.'),
    }),
    access: ClientAccess,
    openedAt: Instant,
    requests: Integer('Requests so far.'),
    bytesIn: Integer('Bytes received so far.'),
    bytesOut: Integer('Bytes sent so far.'),
    streams: Integer('Requests and connections in progress.'),
    closeRequestedAt: InstantOrNull('When a user closed it; its edge has not confirmed it yet. Else null.'),
  },
  { title: 'OpenTunnel' },
)

const listTunnels = operation({
  id: 'tunnels.list',
  method: 'GET',
  path: '/workspaces/{workspace}/tunnels',
  access: 'member',
  summary: 'List open tunnels',
  description:
    'Lists the open tunnels by name, at most 1,000, one for each connected tunnel client. The numbers are at ' +
    'most a few seconds old. Tunnels of an edge that is not connected are missing.',
  params: Type.Object(InWorkspace),
  response: {
    status: 200,
    description: 'Open tunnels.',
    schema: Type.Object(
      {
        tunnels: Type.Array(OpenTunnel),
        isComplete: Type.Boolean({ description: 'False if there are more than 1,000.' }),
      },
      { title: 'OpenTunnels' },
    ),
    example: { tunnels: [exampleTunnel], isComplete: true },
  },
  faults: [],
})

const closeTunnel = operation({
  id: 'tunnels.close',
  method: 'DELETE',
  path: '/workspaces/{workspace}/tunnels/{id}',
  access: 'admin',
  summary: 'Close a tunnel',
  description:
    'Asks the edge to close the tunnel, which takes less than a second if the edge is connected. The tunnel ' +
    'client gets the reason and does not connect again by itself.',
  params: Type.Object({ ...InWorkspace, id: Id }),
  response: {
    status: 200,
    description: 'The edge was asked to close the tunnel.',
    schema: Type.Object({ id: Id, closing: Type.Literal(true) }, { title: 'ClosingTunnel' }),
    example: { id: exampleTunnel.id, closing: true },
  },
  faults: [],
})

const listEdges = operation({
  id: 'edges.list',
  method: 'GET',
  path: '/workspaces/{workspace}/edges',
  access: 'member',
  summary: 'List edges',
  description: 'Lists the active edges of the server by name, at most 1,000.',
  params: Type.Object(InWorkspace),
  response: {
    status: 200,
    description: 'Edges.',
    schema: Type.Object(
      {
        edges: Type.Array(
          Type.Object(
            {
              id: Id,
              name: EdgeName,
              version: TextOrNull('Name and version of the edge; null if it never reported.'),
              startedAt: InstantOrNull('When it was started; null if it never reported.'),
              lastSyncAt: InstantOrNull('When it reported its tunnels last; null if it never did.'),
              isConnected: Type.Boolean({ description: 'Whether it reported in the last 30 seconds.' }),
              tunnels: Integer('Open tunnels of this workspace at the edge.'),
            },
            { title: 'EdgeOfWorkspace' },
          ),
        ),
      },
      { title: 'EdgesOfWorkspace' },
    ),
    example: {
      edges: [
        {
          ...exampleTunnel.edge,
          version: 'adit/0.1.0',
          startedAt: '2026-11-15T08:00:00.000Z',
          lastSyncAt: '2026-11-15T10:02:11.000Z',
          isConnected: true,
          tunnels: 1,
        },
      ],
    },
  },
  faults: [],
})

const exampleName = {
  name: 'my-app',
  host: 'my-app.acme.tunnels.example.com',
  lastUsedAt: '2026-11-15T10:02:11.000Z',
  reserved: true,
  open: 1,
  url: 'https://my-app.acme.tunnels.example.com',
  access: { user: 'preview', allowIp: ['192.0.2.0/24'] },
}

const NameOfWorkspace = Type.Object(
  {
    name: TunnelName,
    host: HostName({ description: 'Host name of its tunnels.' }),
    lastUsedAt: InstantOrNull('When a tunnel was opened with it last; null if never.'),
    reserved: Type.Boolean({ description: 'Whether it is kept without being used.' }),
    open: Integer('Open tunnels with this name.'),
    url: TextOrNull('Public address of an open tunnel with this name; null if none is open.'),
    access: Type.Object({
      user: TextOrNull('User name for basic authentication; null if no password is required.'),
      allowIp: AllowedNetworks,
    }),
  },
  { title: 'NameOfWorkspace' },
)

const listNames = operation({
  id: 'names.list',
  method: 'GET',
  path: '/workspaces/{workspace}/names',
  access: 'member',
  summary: 'List tunnel names',
  description:
    'Lists the tunnel names that are reserved or were used in the last 24 hours, at most 1,000. Passwords are ' +
    'never included.',
  params: Type.Object(InWorkspace),
  response: {
    status: 200,
    description: 'Tunnel names.',
    schema: Type.Object(
      {
        names: Type.Array(NameOfWorkspace),
        reservedMax: Integer('Maximum number of reserved names.'),
      },
      { title: 'NamesOfWorkspace' },
    ),
    example: { names: [exampleName], reservedMax: 100 },
  },
  faults: [],
})

const reserveName = operation({
  id: 'names.reserve',
  method: 'POST',
  path: '/workspaces/{workspace}/names',
  access: 'admin',
  summary: 'Reserve a tunnel name',
  description: 'Keeps the name until it is released. A workspace can reserve 100 names.',
  params: Type.Object(InWorkspace),
  body: Type.Object({ name: TunnelName }, { title: 'NameToReserve', examples: [{ name: 'my-app' }] }),
  response: {
    status: 200,
    description: 'The reserved name.',
    schema: NameOfWorkspace,
    example: exampleName,
  },
  faults: ['conflict'],
})

const releaseName = operation({
  id: 'names.release',
  method: 'DELETE',
  path: '/workspaces/{workspace}/names/{name}',
  access: 'admin',
  summary: 'Release a tunnel name',
  description:
    'Ends the reservation. A name with access rules cannot be released: remove the rules first. Open tunnels ' +
    'stay open.',
  params: Type.Object({ ...InWorkspace, name: TunnelName }),
  response: {
    status: 200,
    description: 'The name is not reserved any more.',
    schema: Type.Object({ name: TunnelName, released: Type.Literal(true) }, { title: 'ReleasedName' }),
    example: { name: 'my-app', released: true },
  },
  faults: ['conflict'],
})

const setAccess = operation({
  id: 'names.set-access',
  method: 'POST',
  path: '/workspaces/{workspace}/names/{name}/access',
  access: 'admin',
  summary: 'Set the access rules of a tunnel name',
  description:
    'Replaces the rules, which apply to every tunnel with this name, also to those that are open. What is ' +
    'absent is removed. A name with rules is reserved.',
  params: Type.Object({ ...InWorkspace, name: TunnelName }),
  body: Type.Object(
    {
      basicAuth: Type.Optional(
        Type.Object(
          {
            user: BasicAuthUser,
            password: Type.Optional(BasicAuthPassword),
          },
          STRICT,
        ),
      ),
      allowIp: Type.Optional(AllowedNetworks),
    },
    {
      title: 'NewAccessRules',
      ...STRICT,
      examples: [{ basicAuth: { user: 'preview', password: 'correct horse' }, allowIp: ['192.0.2.0/24'] }],
    },
  ),
  response: {
    status: 200,
    description: 'The name with its rules.',
    schema: NameOfWorkspace,
    example: exampleName,
  },
  faults: ['conflict', 'rate_limited'],
})

export const tunnelOperations = [
  listTunnels,
  closeTunnel,
  listEdges,
  listNames,
  reserveName,
  releaseName,
  setAccess,
] as const
