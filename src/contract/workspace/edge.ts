// Where the tunnel clients of a workspace connect.
import Type from 'typebox'
import { EdgeUrl, HostName } from '../fields.ts'
import { operation } from '../operation.ts'

export const findEdge = operation({
  id: 'edge.find',
  method: 'GET',
  path: '/edge',
  access: 'key',
  summary: 'Find the edge for tunnels of the workspace',
  description:
    'Returns the public URL where tunnel clients connect. If several connected edges forward to each other, it ' +
    'is that of the one with the fewest tunnels. If `url` is null, because none is set or because edges with ' +
    'different URLs do not forward to each other, connect to `tunnelDomain`.',
  response: {
    status: 200,
    description: 'The edge.',
    schema: Type.Object(
      {
        url: Type.Unsafe<string | null>({ ...EdgeUrl, type: ['string', 'null'] }),
        tunnelDomain: HostName({
          description: 'Parent host name of the workspace’s tunnels, without a scheme.',
          examples: ['acme.tunnels.example.com'],
        }),
      },
      { title: 'TunnelEdge' },
    ),
    example: { url: 'https://edge.example.com', tunnelDomain: 'acme.tunnels.example.com' },
  },
})
