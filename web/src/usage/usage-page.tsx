// What went through a workspace, by day: drawn, as a table, and as a file.
import { Button, Paper, SegmentedControl, SimpleGrid, Skeleton, VisuallyHidden } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useSearchParams } from 'wouter'
import { Page } from '../components/page.tsx'
import { QueryResult, SkeletonRows } from '../components/query-states.tsx'
import { Staggered } from '../components/staggered.tsx'
import { useIsPhone } from '../components/use-is-phone.ts'
import { toCsv } from '../csv.ts'
import { download } from '../download.ts'
import { DownloadIcon } from '../icons.tsx'
import { Totals } from '../overview/totals.tsx'
import { type Series, usageQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { PeakTunnelsChart, RequestsChart, TrafficChart } from './charts.tsx'
import classes from './usage.module.css'
import { UsageTable } from './usage-table.tsx'

const WINDOWS = ['7', '30', '90', '365']
const DEFAULT = '30'

export function UsagePage() {
  const { slug, name } = useWorkspace()
  const [search, setSearch] = useSearchParams()
  const asked = search.get('days') ?? DEFAULT
  const days = WINDOWS.includes(asked) ? asked : DEFAULT
  const usage = useQuery(usageQuery(slug, Number(days)))
  const isPhone = useIsPhone()
  return (
    <Page
      title="Usage"
      of={name}
      lead="Days are days of UTC; today is not over yet."
      actions={
        <Button
          variant="default"
          leftSection={<DownloadIcon />}
          disabled={!usage.data}
          onClick={() => usage.data && saveCsv(name, slug, usage.data.series)}
        >
          Export CSV
        </Button>
      }
    >
      <SegmentedControl
        aria-label="How many days"
        size={isPhone ? 'xs' : 'sm'}
        maw={420}
        data={WINDOWS.map((value) => ({ value, label: `${value} days` }))}
        value={days}
        onChange={(value) => setSearch({ days: value }, { replace: true })}
      />
      <QueryResult query={usage} skeleton={<SkeletonRows count={3} height={240} />}>
        {(figures) => (
          <>
            <Totals usage={figures} />
            <VisuallyHidden component="h2">By day</VisuallyHidden>
            <SimpleGrid cols={{ base: 1, md: 2 }} className={classes.charts}>
              <Staggered key={days} placeholder={<Skeleton h={332} />}>
                <Paper p="lg">
                  <TrafficChart series={figures.series} />
                </Paper>
                <Paper p="lg">
                  <RequestsChart series={figures.series} />
                </Paper>
                <Paper p="lg">
                  <PeakTunnelsChart series={figures.series} />
                </Paper>
              </Staggered>
            </SimpleGrid>
            <UsageTable series={figures.series} />
          </>
        )}
      </QueryResult>
    </Page>
  )
}

function saveCsv(workspace: string, slug: string, series: Series): void {
  const head = ['workspace', 'day', 'requests', 'bytes_in', 'bytes_out', 'peak_tunnels', 'events']
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
  download(`adit-usage-${slug}-${series.length}-days-to-${lastDay}.csv`, 'text/csv', toCsv([head, ...rows]))
}
