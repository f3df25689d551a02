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
    'Returns the public URL of the edge that a tunnel client connects to, as the operator has set it; of ' +
    'several edges that forward to each other, that of the connected one with the fewest tunnels. If `url` ' +
    'is null, because none is set, or edges with different ones do not forward to each other, connect to ' +
    '`tunnelDomain`, whose DNS records lead to an edge.',
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
