// Edges of the server, and whether they are connected.
import { Badge, Group, Paper, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { CopyBlock } from '../components/copy.tsx'
import { EmptyState } from '../components/lists/query-states.tsx'
import rows from '../components/lists/rows.module.css'
import { RelativeTime } from '../components/relative-time.tsx'
import { formatCount } from '../format.ts'
import { TunnelIcon } from '../icons.tsx'
import { edgeCommands } from '../overview/commands.ts'
import { type Edge, workspaceQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'

export function EdgeList({ edges }: { edges: readonly Edge[] }) {
  const { slug } = useWorkspace()
  const { data: workspace } = useQuery(workspaceQuery(slug))
  if (edges.length === 0)
    return (
      <EmptyState
        icon={<TunnelIcon size={36} />}
        title="No edges"
        action={workspace && <CopyBlock text={edgeCommands(workspace)} name="Copy edge commands" />}
      >
        An edge receives requests from the internet and sends them through your tunnels. Your server admin
        starts one:
      </EmptyState>
    )
  return (
    <Paper>
      <ul className={rows.rows} aria-label="Edges">
        {edges.map((edge) => (
          <EdgeRow key={edge.id} edge={edge} />
        ))}
      </ul>
    </Paper>
  )
}

function EdgeRow({ edge }: { edge: Edge }) {
  return (
    <li>
      <Group justify="space-between" gap="sm">
        <Stack gap={2} flex="1 1 240px" miw={0}>
          <Group gap="xs">
            <Text fw={600} size="sm">
              {edge.name}
            </Text>
            <EdgeBadge edge={edge} />
          </Group>
          <Text size="xs" c="dimmed">
            {edge.version ?? 'Has not reported yet'}
            {edge.startedAt && edge.isConnected && (
              <>
                {' '}
                · Started <RelativeTime at={edge.startedAt} />
              </>
            )}
            {edge.lastSyncAt && (
              <>
                {' '}
                · Last report <RelativeTime at={edge.lastSyncAt} />
              </>
            )}
          </Text>
        </Stack>
        <Text size="sm" className="tabular">
          {edge.tunnels === 1 ? '1 tunnel' : `${formatCount(edge.tunnels)} tunnels`}
        </Text>
      </Group>
    </li>
  )
}

function EdgeBadge({ edge }: { edge: Edge }) {
  if (edge.isConnected) return <Badge color="green">Online</Badge>
  return edge.lastSyncAt ? <Badge color="red">Offline</Badge> : <Badge color="gray">Never connected</Badge>
}
