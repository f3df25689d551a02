// A workspace in the dashboard: its details and usage.
import Type from 'typebox'
import {
  Count,
  HostName,
  Instant,
  InstantOrNull,
  ok,
  Slug,
  TextOrNull,
  UsageDays,
  WorkspaceName,
} from '../fields.ts'
import { operation } from '../operation.ts'
import { InWorkspace, Role } from './members.ts'
import { Policy } from './settings.ts'

const counterFields = {
  requests: Count(),
  bytesIn: Count(),
  bytesOut: Count(),
  peakTunnels: Count(),
  events: Count(),
}

export const workspaceOperations = [
  operation({
    id: 'workspace.read',
    method: 'GET',
    path: '/workspaces/{workspace}',
    access: 'member',
    summary: 'Get the workspace',
    params: Type.Object(InWorkspace),
    response: ok({
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
  }),
  operation({
    id: 'usage.read',
    method: 'GET',
    path: '/workspaces/{workspace}/usage',
    access: 'member',
    summary: 'Get usage',
    params: Type.Object(InWorkspace),
    query: Type.Object({ days: UsageDays }),
    response: ok({
      ...counterFields,
      lastSeen: InstantOrNull(),
      series: Type.Array(Type.Object({ day: Instant, ...counterFields })),
    }),
  }),
] as const
