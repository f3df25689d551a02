import { type ApiInput, withApi } from '../api.ts'
import type { Io } from '../io.ts'

const NOT_PROVISIONED = 'no: edges reject its tunnels until the operator provisions it'

export async function show(input: ApiInput, io: Io): Promise<void> {
  const workspace = await withApi(input, (client) => client.workspace.read())
  const { slug, name, provisioned } = workspace
  // Variant A has the tunnel domain, variant B an example of a tunnel.
  const { tunnelBase, exampleUrl } = workspace as { tunnelBase?: string; exampleUrl?: string }
  const lines = [
    `${name} (${slug})`,
    `  Provisioned    ${provisioned ? 'yes' : NOT_PROVISIONED}`,
    tunnelBase ? `  Tunnel domain  ${tunnelBase}` : `  Tunnels        e.g. ${exampleUrl}`,
  ]
  io.data(workspace, lines.join('\n'))
}
