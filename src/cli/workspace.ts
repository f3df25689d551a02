import { type ApiInput, withApi } from './api.ts'
import type { Io } from './io.ts'

export async function show(input: ApiInput, io: Io): Promise<void> {
  const workspace = await withApi(input, (client) => client.workspace.read())
  const { slug, name, provisioned } = workspace
  // Variant A has a base for tunnels, variant B an example of one.
  const { tunnelBase, exampleUrl } = workspace as { tunnelBase?: string; exampleUrl?: string }
  const lines = [
    `${name} (${slug})`,
    `  provisioned  ${provisioned ? 'yes: edges carry its tunnels' : 'no: edges do not carry its tunnels yet'}`,
    tunnelBase ? `  tunnels      under ${tunnelBase}` : `  tunnels      such as ${exampleUrl}`,
  ]
  io.data(workspace, lines.join('\n'))
}
