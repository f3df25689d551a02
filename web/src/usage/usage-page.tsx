// Usage of a workspace: totals, charts, a table by day, and a CSV export.
import { Button, Paper, SegmentedControl, SimpleGrid, Skeleton, VisuallyHidden } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useSearchParams } from 'wouter'
import { toCsv } from '../../../src/lib/csv.ts'
import type { Output } from '../api.ts'
import { EmptyState, QueryResult, SkeletonRows } from '../components/lists/query-states.tsx'
import { Staggered } from '../components/lists/staggered.tsx'
import { Page } from '../components/page.tsx'
import { RelativeTime } from '../components/relative-time.tsx'
import { useIsPhone } from '../components/use-is-phone.ts'
import { download } from '../download.ts'
import { DownloadIcon, UsageIcon } from '../icons.tsx'
import { Totals } from '../overview/totals.tsx'
import { type Series, usageQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { isDrawnByWeek, PeakTunnelsChart, RequestsChart, TrafficChart } from './charts.tsx'
import classes from './usage.module.css'
import { UsageTable } from './usage-table.tsx'

type Usage = Output<'usage.read'>

const RANGES = ['7', '30', '90', '365']
const DEFAULT_RANGE = '30'
const DAILY = 'Daily totals (UTC), including today so far.'
const WEEKLY = 'Weekly totals (UTC), from Monday. The first and current week may be incomplete.'

export function UsagePage() {
  const { slug, name } = useWorkspace()
  const [search, setSearch] = useSearchParams()
  const requested = search.get('days') ?? DEFAULT_RANGE
  const days = RANGES.includes(requested) ? requested : DEFAULT_RANGE
  const usage = useQuery(usageQuery(slug, Number(days)))
  const isPhone = useIsPhone()
  return (
    <Page
      title="Usage"
      context={name}
      description={isDrawnByWeek(Number(days)) ? WEEKLY : DAILY}
      actions={
        <Button
          variant="default"
          leftSection={<DownloadIcon />}
          disabled={!usage.data}
          onClick={() => usage.data && downloadCsv(name, slug, usage.data.series)}
        >
          Export CSV
        </Button>
      }
    >
      <SegmentedControl
        aria-label="Date range"
        size={isPhone ? 'xs' : 'sm'}
        maw={420}
        data={RANGES.map((value) => ({ value, label: `${value} days` }))}
        value={days}
        onChange={(value) => setSearch({ days: value }, { replace: true })}
      />
      <QueryResult query={usage} skeleton={<SkeletonRows count={3} height={240} />}>
        {(data) =>
          hasUsage(data) ? (
            <UsageDetails key={days} usage={data} />
          ) : (
            <NoUsage days={days} lastSeen={data.lastSeen} />
          )
        }
      </QueryResult>
    </Page>
  )
}

const hasUsage = ({ requests, bytesIn, bytesOut, peakTunnels, events }: Usage): boolean =>
  [requests, bytesIn, bytesOut, peakTunnels, events].some((count) => count > 0)

function UsageDetails({ usage }: { usage: Usage }) {
  return (
    <>
      <Totals usage={usage} />
      <VisuallyHidden component="h2">Charts</VisuallyHidden>
      <SimpleGrid cols={{ base: 1, md: 2 }} className={classes.charts}>
        <Staggered placeholder={<Skeleton h={332} />}>
          <Paper p="lg">
            <TrafficChart series={usage.series} />
          </Paper>
          <Paper p="lg">
            <RequestsChart series={usage.series} />
          </Paper>
          <Paper p="lg">
            <PeakTunnelsChart series={usage.series} />
          </Paper>
        </Staggered>
      </SimpleGrid>
      <UsageTable series={usage.series} />
    </>
  )
}

function NoUsage({ days, lastSeen }: { days: string; lastSeen: string | null }) {
  const { slug } = useWorkspace()
  if (lastSeen !== null)
    return (
      <EmptyState icon={<UsageIcon size={36} />} title={`No traffic in the last ${days} days`}>
        Last activity: <RelativeTime at={lastSeen} />. Choose a longer range to see it.
      </EmptyState>
    )
  return (
    <EmptyState
      icon={<UsageIcon size={36} />}
      title="No usage yet"
      action={
        <Button component={Link} href={`/w/${slug}`}>
          Open your first tunnel
        </Button>
      }
    >
      Usage appears here seconds after the first request to a tunnel of this workspace.
    </EmptyState>
  )
}

function downloadCsv(workspace: string, slug: string, series: Series): void {
  const header = ['workspace', 'day', 'requests', 'bytes_in', 'bytes_out', 'peak_tunnels', 'events']
  const rows = series.map(({ day, requests, bytesIn, bytesOut, peakTunnels, events }) => [
    workspace,
    day.slice(0, 10),
    requests,
    bytesIn,
    bytesOut,
    peakTunnels,
    events,
  ])
  const lastDay = series.at(-1)?.day.slice(0, 10) ?? 'empty'
  download(`adit-usage-${slug}-${series.length}-days-to-${lastDay}.csv`, 'text/csv', toCsv([header, ...rows]))
}
