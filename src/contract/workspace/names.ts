// Tunnel names of the workspace: those that are reserved or were used in the last day.
import Type from 'typebox'
import { AllowedNetworks } from '../edge/access-rules.ts'
import { TunnelName } from '../edge/tunnel-fields.ts'
import { HostName, InstantOrNull, TextOrNull } from '../fields.ts'
import { operation } from '../operation.ts'
import { cursorRule, NextCursor, PAGING, pageQuery } from './pages.ts'

export const ListedName = Type.Object(
  {
    name: TunnelName,
    host: HostName({ description: 'Host name of tunnels with this name.' }),
    lastUsedAt: InstantOrNull('When a tunnel was last opened with it; null if never.'),
    reserved: Type.Boolean({ description: 'Whether it is kept although no tunnel uses it.' }),
    open: Type.Integer({ minimum: 0, maximum: 1_000_000, description: 'Open tunnels with this name.' }),
    url: Type.Unsafe<string | null>({
      ...TextOrNull,
      description: 'Public URL, or address of a TCP tunnel; null while no tunnel is open.',
    }),
    access: Type.Object(
      { user: TextOrNull, allowIp: AllowedNetworks, hostHeader: TextOrNull },
      { description: 'Access rules of the name. If `user` is not null, requests need its password.' },
    ),
  },
  { title: 'TunnelName' },
)

export const listNames = operation({
  id: 'names.list',
  method: 'GET',
  path: '/names',
  access: 'key',
  summary: 'List tunnel names',
  description: `Lists the tunnel names of the workspace that are reserved or were used in the last day. ${PAGING}`,
  query: Type.Object(pageQuery(Type.String({ pattern: '^[a-z0-9-]{1,63}$', ...cursorRule }))),
  response: {
    status: 200,
    description: 'The tunnel names.',
    schema: Type.Object({ names: Type.Array(ListedName), next: NextCursor }, { title: 'TunnelNameList' }),
    example: {
      names: [
        {
          name: 'my-app',
          host: 'my-app.acme.tunnels.example.com',
          lastUsedAt: '2026-11-15T09:30:00.000Z',
          reserved: true,
          open: 1,
          url: 'https://my-app.acme.tunnels.example.com',
          access: { user: 'preview', allowIp: ['192.0.2.0/24'], hostHeader: null },
        },
      ],
      next: null,
    },
  },
  tool: { name: 'list_tunnel_names', title: 'List tunnel names', hints: { readOnly: true } },
})
