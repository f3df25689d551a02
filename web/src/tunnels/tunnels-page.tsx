// Open tunnels, tunnel names and edges of a workspace. Members see them; admins and owners change them.
import { Alert, Tabs, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useSearchParams } from 'wouter'
import { QueryResult, SkeletonRows } from '../components/lists/query-states.tsx'
import { LiveStatus } from '../components/live-status.tsx'
import { Page } from '../components/page.tsx'
import { RelativeTime } from '../components/relative-time.tsx'
import { formatCount } from '../format.ts'
import { WarningIcon } from '../icons.tsx'
import { type Edge, edgesQuery, namesQuery, tunnelsQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { EdgeList } from './edge-list.tsx'
import { NameList } from './name-list.tsx'
import { OpenTunnels } from './open-tunnels.tsx'
import { formatTunnelCount } from './tunnel-cells.tsx'

const tabs = ['open', 'names', 'edges'] as const
type Tab = (typeof tabs)[number]

export function TunnelsPage() {
  const { slug, name } = useWorkspace()
  const [search, setSearch] = useSearchParams()
  const tab = tabs.find((each) => each === search.get('tab')) ?? 'open'
  const tunnels = useQuery(tunnelsQuery(slug))
  const edges = useQuery(edgesQuery(slug))
  const names = useQuery({ ...namesQuery(slug), enabled: tab === 'names' })
  const setTab = (next: string | null) =>
    setSearch(next === null || next === 'open' ? {} : { tab: next }, { replace: true })
  return (
    <Page
      title="Tunnels"
      context={name}
      description="Open tunnels, the names they use, and the edges that carry them."
      actions={<LiveStatus query={{ open: tunnels, names, edges }[tab]} />}
    >
      {edges.data?.edges.filter(isLost).map((edge) => (
        <LostEdgeAlert key={edge.id} edge={edge} />
      ))}
      <Tabs key={slug} value={tab} onChange={setTab} keepMounted={false}>
        <Tabs.List mb="md">
          <TabLabel tab="open" name="Open" count={tunnels.data && formatTunnelCount(tunnels.data)} />
          <TabLabel tab="names" name="Names" />
          <TabLabel tab="edges" name="Edges" count={edges.data && formatCount(edges.data.edges.length)} />
        </Tabs.List>
        <Tabs.Panel value="open">
          <QueryResult query={tunnels} skeleton={<SkeletonRows count={5} height={64} />}>
            {(data) => <OpenTunnels {...data} />}
          </QueryResult>
        </Tabs.Panel>
        <Tabs.Panel value="names">
          <QueryResult query={names} skeleton={<SkeletonRows count={5} height={64} />}>
            {(data) => <NameList {...data} />}
          </QueryResult>
        </Tabs.Panel>
        <Tabs.Panel value="edges">
          <QueryResult query={edges} skeleton={<SkeletonRows count={2} height={64} />}>
            {(data) => <EdgeList edges={data.edges} />}
          </QueryResult>
        </Tabs.Panel>
      </Tabs>
    </Page>
  )
}

function TabLabel({ tab, name, count }: { tab: Tab; name: string; count?: string | undefined }) {
  return (
    <Tabs.Tab
      value={tab}
      px={{ base: 'sm', xs: 'md' }}
      rightSection={
        count !== undefined && (
          <Text span size="xs" c="dimmed" className="tabular">
            {count}
          </Text>
        )
      }
    >
      {name}
    </Tabs.Tab>
  )
}

/** Edges that have been offline for longer were probably stopped for good. */
const LOST_MAX_MS = 3_600_000

const isLost = ({ isConnected, lastSyncAt }: Edge): boolean =>
  !isConnected && lastSyncAt !== null && Date.now() - Date.parse(lastSyncAt) < LOST_MAX_MS

function LostEdgeAlert({ edge: { name, lastSyncAt } }: { edge: Edge }) {
  return (
    <Alert color="amber" icon={<WarningIcon />} title={`Edge ${name} is offline`}>
      Its tunnels may still be open, but you cannot see or close them until it reports again. Last report:{' '}
      {lastSyncAt && <RelativeTime at={lastSyncAt} />}.
    </Alert>
  )
}
