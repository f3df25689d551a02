// Open tunnels of a workspace, the edges that carry them, and its tunnel names with their access rules.
import Type from 'typebox'
import { AllowedNetworks, BasicAuthPassword, BasicAuthUser, HostHeader } from '../edge/access-rules.ts'
import { TunnelName } from '../edge/tunnel-fields.ts'
import { Id, ok } from '../fields.ts'
import { operation, STRICT } from '../operation.ts'
import { ListedEdge } from '../workspace/edges.ts'
import { ListedName } from '../workspace/names.ts'
import { OpenTunnel } from '../workspace/tunnels.ts'
import { InWorkspace } from './members.ts'

const Integer = Type.Integer({ minimum: 0 })

export const tunnelOperations = [
  operation({
    id: 'tunnels.list',
    method: 'GET',
    path: '/workspaces/{workspace}/tunnels',
    access: 'member',
    summary: 'List open tunnels',
    params: Type.Object(InWorkspace),
    response: ok({ tunnels: Type.Array(OpenTunnel), isComplete: Type.Boolean() }),
  }),
  operation({
    id: 'tunnels.close',
    method: 'DELETE',
    path: '/workspaces/{workspace}/tunnels/{id}',
    access: 'admin',
    audit: ['tunnel.closed'],
    summary: 'Close a tunnel',
    params: Type.Object({ ...InWorkspace, id: Id }),
    response: ok({ id: Id, closing: Type.Literal(true) }),
  }),
  operation({
    id: 'edges.list',
    method: 'GET',
    path: '/workspaces/{workspace}/edges',
    access: 'member',
    summary: 'List edges',
    params: Type.Object(InWorkspace),
    response: ok({ edges: Type.Array(ListedEdge) }),
  }),
  operation({
    id: 'names.list',
    method: 'GET',
    path: '/workspaces/{workspace}/names',
    access: 'member',
    summary: 'List tunnel names',
    params: Type.Object(InWorkspace),
    response: ok({ names: Type.Array(ListedName), reservedMax: Integer }),
  }),
  operation({
    id: 'names.reserve',
    method: 'POST',
    path: '/workspaces/{workspace}/names',
    access: 'admin',
    audit: ['name.reserved'],
    summary: 'Reserve a tunnel name',
    params: Type.Object(InWorkspace),
    body: Type.Object({ name: TunnelName }),
    response: { status: 200, schema: ListedName },
    faults: ['conflict'],
  }),
  operation({
    id: 'names.release',
    method: 'DELETE',
    path: '/workspaces/{workspace}/names/{name}',
    access: 'admin',
    audit: ['name.released'],
    summary: 'Release a tunnel name',
    params: Type.Object({ ...InWorkspace, name: TunnelName }),
    response: ok({ name: TunnelName, released: Type.Literal(true) }),
    faults: ['conflict'],
  }),
  operation({
    id: 'names.set-access',
    method: 'POST',
    path: '/workspaces/{workspace}/names/{name}/access',
    access: 'admin',
    audit: ['name.rules-changed'],
    summary: 'Set the access rules of a tunnel name',
    params: Type.Object({ ...InWorkspace, name: TunnelName }),
    body: Type.Object(
      {
        basicAuth: Type.Optional(
          Type.Object({ user: BasicAuthUser, password: Type.Optional(BasicAuthPassword) }, STRICT),
        ),
        allowIp: Type.Optional(AllowedNetworks),
        hostHeader: Type.Optional(HostHeader),
      },
      STRICT,
    ),
    response: { status: 200, schema: ListedName },
    faults: ['conflict', 'rate_limited'],
  }),
] as const
