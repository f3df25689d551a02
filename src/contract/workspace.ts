// The workspace that a key belongs to, in both variants.
import Type, { type TSchema } from 'typebox'
import { HostName, Slug, WorkspaceName } from './fields.ts'
import { operation } from './operation.ts'

const fields = {
  slug: Slug,
  name: WorkspaceName,
  provisioned: Type.Boolean({ description: 'Whether edges carry tunnels for this workspace yet.' }),
}

const WorkspaceA = Type.Object(
  {
    ...fields,
    tunnelBase: HostName({
      description: 'Host name under which the workspace’s tunnels live, without a scheme.',
      examples: ['acme.tunnels.example.com'],
    }),
  },
  { title: 'Workspace' },
)

const WorkspaceB = Type.Object(
  {
    ...fields,
    exampleUrl: HostName({
      description: 'Host name that a tunnel called `my-app` would have, without a scheme.',
      examples: ['my-app.acme.tunnels.example.com'],
    }),
  },
  { title: 'Workspace' },
)

const read = <T extends TSchema>(schema: T, example: unknown) =>
  operation({
    id: 'workspace.read',
    method: 'GET',
    path: '/workspace',
    access: 'key',
    summary: 'Read the workspace',
    description: 'Returns the workspace that owns the presented key.',
    response: { status: 200, description: 'The workspace.', schema, example },
    faults: [],
    tool: { name: 'get_workspace', title: 'Read the workspace', hints: { readOnly: true } },
  })

export const readWorkspace = {
  A: read(WorkspaceA, {
    slug: 'acme',
    name: 'Acme',
    provisioned: true,
    tunnelBase: 'acme.tunnels.example.com',
  }),
  B: read(WorkspaceB, {
    slug: 'acme',
    name: 'Acme',
    provisioned: true,
    exampleUrl: 'my-app.acme.tunnels.example.com',
  }),
}
