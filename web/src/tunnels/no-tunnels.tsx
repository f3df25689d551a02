// Shown while no tunnel is open: the commands that open one, and what is missing before.
import { Code, Paper, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { ClientSetup, Command } from '../components/client-setup.tsx'
import { TunnelIcon } from '../icons.tsx'
import { edgeCommands, provisionCommand } from '../overview/commands.ts'
import { edgesQuery, workspaceQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'

export function NoTunnels() {
  const { slug } = useWorkspace()
  const { data: workspace } = useQuery(workspaceQuery(slug))
  const { data: edges } = useQuery(edgesQuery(slug))
  return (
    <Paper p={{ base: 'md', xs: 'xl' }}>
      <Stack maw={620} mx="auto">
        <Stack align="center" gap="xs" ta="center">
          <Text c="dimmed" component="span">
            <TunnelIcon size={36} />
          </Text>
          <Title order={2} size="h4">
            No open tunnels
          </Title>
          <Text c="dimmed" size="sm">
            A tunnel gives an app on your machine a public URL. It appears here when it is open.
          </Text>
        </Stack>
        {workspace?.provisioned === false && (
          <Text size="sm">
            You cannot open tunnels until your server admin runs{' '}
            <Code className="mono">{provisionCommand(slug)}</Code>.
          </Text>
        )}
        {workspace && edges?.edges.every(({ isConnected }) => !isConnected) && (
          <Command command={edgeCommands(workspace)} name="Copy edge commands">
            No edge is connected. Your server admin starts one on the server:
          </Command>
        )}
        <ClientSetup />
      </Stack>
    </Paper>
  )
}
