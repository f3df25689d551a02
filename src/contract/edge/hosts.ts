// Host names of tunnels, for edges that decide which certificates their proxy may obtain.
import Type from 'typebox'
import { Slug } from '../fields.ts'
import { operation } from '../operation.ts'
import { REPORTED_BY_EDGES } from './tunnel-fields.ts'

const FoundHost = Type.Object(
  {
    found: Type.Literal(true),
    workspace: Type.Unsafe<string | null>({
      ...Slug,
      type: ['string', 'null'],
      description: 'Workspace of the host; null for the tunnel domain of the deployment.',
    }),
  },
  { title: 'FoundHost' },
)

const UnknownHost = Type.Object({ found: Type.Literal(false) }, { title: 'UnknownHost' })

export const findHost = operation({
  id: 'hosts.find',
  method: 'POST',
  path: '/hosts/find',
  access: 'edge',
  audit: REPORTED_BY_EDGES,
  summary: 'Find a host name',
  description:
    'Returns whether a host name is the tunnel domain of this deployment or of a workspace of the ' +
    'edge’s group, or has a name that such a workspace has reserved or used within a day. An edge asks ' +
    'before its proxy obtains a certificate for a host at which no tunnel is open.',
  body: Type.Object(
    {
      host: Type.String({
        maxLength: 253,
        pattern: '^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$',
        description: 'Host name in lower case, without a port.',
        'x-rule': 'must be a host name in lower case',
      }),
    },
    { title: 'HostToFind', examples: [{ host: 'acme.tunnels.example.com' }] },
  ),
  response: {
    status: 200,
    description: 'Whether the host is known.',
    schema: Type.Union([FoundHost, UnknownHost], { title: 'HostResult' }),
    example: { found: true, workspace: 'acme' },
  },
})
