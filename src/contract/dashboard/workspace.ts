// A workspace in the dashboard: its details and usage.
import Type from 'typebox'
import { Count, HostName, Instant, InstantOrNull, Slug, WorkspaceName } from '../fields.ts'
import { operation } from '../operation.ts'
import { InWorkspace, Role } from './members.ts'
import { examplePolicy, Policy } from './settings.ts'

const readWorkspace = operation({
  id: 'workspace.read',
  method: 'GET',
  path: '/workspaces/{workspace}',
  access: 'member',
  summary: 'Get the workspace',
  description: 'Returns the workspace and the role of the signed-in user.',
  params: Type.Object(InWorkspace),
  response: {
    status: 200,
    description: 'The workspace.',
    schema: Type.Object(
      {
        slug: Slug,
        name: WorkspaceName,
        provisioned: Type.Boolean({ description: 'Whether tunnels may be opened for this workspace.' }),
        tunnelBase: HostName({ description: 'Parent host name of the workspace’s tunnels.' }),
        exampleUrl: HostName({ description: 'Host name of an example tunnel.' }),
        createdAt: Instant,
        role: Role,
        edgeName: Type.Unsafe<string | null>({
          type: ['string', 'null'],
          description: 'Name of an active edge of this server; null before one is registered.',
        }),
        keysCanManageKeys: Type.Boolean({
          description:
            'Whether API keys can create and revoke API keys, unless the policy forbids it (variant A), or only users (variant B).',
        }),
        policy: Policy,
      },
      { title: 'WorkspaceDetails' },
    ),
    example: {
      slug: 'acme',
      name: 'Acme',
      provisioned: true,
      tunnelBase: 'acme.tunnels.example.com',
      exampleUrl: 'my-app.acme.tunnels.example.com',
      createdAt: '2026-11-01T09:30:00.000Z',
      role: 'owner',
      edgeName: 'fra-1',
      keysCanManageKeys: true,
      policy: examplePolicy,
    },
  },
  faults: [],
})

const figures = {
  requests: Count('Number of requests.'),
  bytesIn: Count('Bytes received.'),
  bytesOut: Count('Bytes sent.'),
  peakTunnels: Count('Peak of concurrently open tunnels.'),
  events: Count('Number of tunnels opened, closed and rejected.'),
}

const readUsage = operation({
  id: 'usage.read',
  method: 'GET',
  path: '/workspaces/{workspace}/usage',
  access: 'member',
  summary: 'Get usage',
  description:
    'Returns the totals and a series per UTC day of the last `days` days, including today. Integers are ' +
    'exact.',
  params: Type.Object(InWorkspace),
  query: Type.Object({
    days: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 365,
        default: 30,
        description: 'Number of days, including today.',
      }),
    ),
  }),
  response: {
    status: 200,
    description: 'Totals and daily series.',
    schema: Type.Object(
      {
        ...figures,
        lastSeen: InstantOrNull(
          'Time of the last traffic, also if before the range; null if there was none.',
        ),
        series: Type.Array(Type.Object({ day: Instant, ...figures }, { title: 'UsageDayOfWorkspace' }), {
          description: 'One entry per day, oldest first. Today is partial.',
        }),
      },
      { title: 'UsageOfWorkspace' },
    ),
    example: {
      requests: 12,
      bytesIn: 3400,
      bytesOut: 91000,
      peakTunnels: 3,
      events: 4,
      lastSeen: '2026-11-15T10:02:11.000Z',
      series: [
        {
          day: '2026-11-15T00:00:00.000Z',
          requests: 12,
          bytesIn: 3400,
          bytesOut: 91000,
          peakTunnels: 3,
          events: 4,
        },
      ],
    },
  },
  faults: [],
})

export const workspaceOperations = [readWorkspace, readUsage] as const
