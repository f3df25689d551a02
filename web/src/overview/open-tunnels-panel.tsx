// Open tunnels at the top of the overview.
import { Anchor, Badge, Code, Group, Paper, Skeleton, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import { LOCAL_PORT } from '../../../src/lib/client-commands.ts'
import { CopyBlock } from '../components/copy.tsx'
import { QueryResult } from '../components/lists/query-states.tsx'
import rows from '../components/lists/rows.module.css'
import { LiveStatus } from '../components/live-status.tsx'
import { RelativeTime } from '../components/relative-time.tsx'
import { formatCount, formatCountShort } from '../format.ts'
import { type Tunnel, tunnelsQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { TunnelAddress, TunnelBadges } from '../tunnels/tunnel-address.tsx'
import { formatTunnelCount } from '../tunnels/tunnel-cells.tsx'
import { client } from './commands.ts'

const SHOWN_MAX = 5

interface OpenTunnelsPanelProps {
  /** Whether the steps to the first tunnel are on the same page; undefined while that is not known. */
  showsSteps: boolean | undefined
}

export function OpenTunnelsPanel({ showsSteps }: OpenTunnelsPanelProps) {
  const { slug } = useWorkspace()
  const tunnels = useQuery(tunnelsQuery(slug))
  return (
    <QueryResult query={tunnels} skeleton={<Skeleton h={140} />}>
      {(data) => (
        <Paper>
          <Group justify="space-between" px="lg" pt="lg" gap="xs">
            <Group gap="xs">
              <Title order={2} size="h4">
                Open tunnels
              </Title>
              <Badge color={data.tunnels.length > 0 ? 'green' : 'gray'} size="lg" className="tabular">
                {formatTunnelCount(data)}
              </Badge>
            </Group>
            <LiveStatus query={tunnels} />
          </Group>
          {data.tunnels.length === 0 ? (
            <NoTunnels showsSteps={showsSteps} />
          ) : (
            <LatestTunnels tunnels={data.tunnels} />
          )}
        </Paper>
      )}
    </QueryResult>
  )
}

function LatestTunnels({ tunnels }: { tunnels: readonly Tunnel[] }) {
  const { slug } = useWorkspace()
  const latest = tunnels.toSorted((a, b) => b.openedAt.localeCompare(a.openedAt)).slice(0, SHOWN_MAX)
  const more = tunnels.length - latest.length
  return (
    <>
      <ul className={`${rows.rows} ${rows.dense}`} aria-label="Latest tunnels">
        {latest.map((tunnel) => (
          <li key={tunnel.id}>
            <Group justify="space-between" gap={4}>
              <Group gap="xs" miw={0} flex="1 1 320px">
                <TunnelAddress tunnel={tunnel} />
                <TunnelBadges tunnel={tunnel} />
              </Group>
              <Text size="xs" c="dimmed" className="tabular">
                {tunnel.key.label && `${tunnel.key.label} · `}
                {formatCountShort(tunnel.requests)} {tunnel.requests === 1 ? 'request' : 'requests'} ·{' '}
                <RelativeTime at={tunnel.openedAt} />
              </Text>
            </Group>
          </li>
        ))}
      </ul>
      <Text size="sm" px="lg" pb="md" pt={4}>
        <Anchor component={Link} href={`/w/${slug}/tunnels`}>
          {more > 0 ? `View all ${formatCount(tunnels.length)} tunnels` : 'View tunnels'}
        </Anchor>
      </Text>
    </>
  )
}

function NoTunnels({ showsSteps }: OpenTunnelsPanelProps) {
  if (showsSteps === undefined) return <Skeleton h={68} mx="lg" my="md" w="auto" />
  return (
    <Stack gap="xs" px="lg" pb="lg" pt={4}>
      <Text size="sm" c="dimmed">
        {showsSteps ? (
          'None yet. Follow the steps above to open one.'
        ) : (
          <>
            Open one for your app on port {LOCAL_PORT}, after <Code className="mono">{client.login}</Code>:
          </>
        )}
      </Text>
      {!showsSteps && <CopyBlock text={client.tunnel} name="Copy tunnel command" />}
    </Stack>
  )
}
