// The workspace of an API key, in both variants.
import Type, { type TSchema } from 'typebox'
import { HostName, Slug, WorkspaceName } from '../fields.ts'
import { operation } from '../operation.ts'

const fields = {
  slug: Slug,
  name: WorkspaceName,
  provisioned: Type.Boolean({ description: 'Whether tunnels may be opened for this workspace.' }),
}

const WorkspaceA = Type.Object(
  {
    ...fields,
    tunnelBase: HostName({
      description: 'Parent host name of the workspace’s tunnels, without a scheme.',
      examples: ['acme.tunnels.example.com'],
    }),
  },
  { title: 'Workspace' },
)

const WorkspaceB = Type.Object(
  {
    ...fields,
    exampleUrl: HostName({
      description: 'Host name of a tunnel named `my-app`, without a scheme.',
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
    summary: 'Get the workspace',
    description: 'Returns the workspace of the API key.',
    response: { status: 200, description: 'The workspace.', schema, example },
    tool: { name: 'get_workspace', title: 'Get the workspace', hints: { readOnly: true } },
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
