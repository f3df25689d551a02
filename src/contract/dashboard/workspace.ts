// A workspace in the dashboard: its details and usage.
import Type from 'typebox'
import {
  Count,
  HostName,
  Instant,
  InstantOrNull,
  Slug,
  TextOrNull,
  UsageDays,
  WorkspaceName,
} from '../fields.ts'
import { operation } from '../operation.ts'
import { InWorkspace, Role } from './members.ts'
import { Policy } from './settings.ts'

const readWorkspace = operation({
  id: 'workspace.read',
  method: 'GET',
  path: '/workspaces/{workspace}',
  access: 'member',
  summary: 'Get the workspace',
  params: Type.Object(InWorkspace),
  response: {
    status: 200,
    schema: Type.Object({
      slug: Slug,
      name: WorkspaceName,
      provisioned: Type.Boolean(),
      tunnelBase: HostName(),
      exampleUrl: HostName(),
      createdAt: Instant,
      role: Role,
      edgeName: TextOrNull,
      edgeUrl: TextOrNull,
      keysCanManageKeys: Type.Boolean(),
      policy: Policy,
    }),
  },
})

const counterFields = {
  requests: Count(),
  bytesIn: Count(),
  bytesOut: Count(),
  peakTunnels: Count(),
  events: Count(),
}

const readUsage = operation({
  id: 'usage.read',
  method: 'GET',
  path: '/workspaces/{workspace}/usage',
  access: 'member',
  summary: 'Get usage',
  params: Type.Object(InWorkspace),
  query: Type.Object({ days: UsageDays }),
  response: {
    status: 200,
    schema: Type.Object({
      ...counterFields,
      lastSeen: InstantOrNull(),
      series: Type.Array(Type.Object({ day: Instant, ...counterFields })),
    }),
  },
})

export const workspaceOperations = [readWorkspace, readUsage] as const
