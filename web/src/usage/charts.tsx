// Charts of usage over time. The chart library is as large as the rest of the bundle, so it has its own
// chunk.
import { Skeleton, Stack, Text, Title } from '@mantine/core'
import { type ComponentType, lazy, Suspense, useMemo } from 'react'
import type { Series } from '../queries.ts'
import { byDay, byWeek, type ChartPoint } from './weeks.ts'

const loadCharts = () => import('./chart-impl.tsx')

/** Loads the chunk while the browser is idle, so that the first chart is not delayed by it. */
export function preloadCharts(): () => void {
  const idle = window.requestIdleCallback?.(() => void loadCharts().catch(() => {}))
  return () => idle !== undefined && window.cancelIdleCallback(idle)
}

export interface ChartProps {
  points: ChartPoint[]
  interval: 'day' | 'week'
}

/** More points than this are too dense to read. */
const MAX_DAYS = 120

export const isDrawnByWeek = (days: number): boolean => days > MAX_DAYS

const chart = (title: string, name: keyof Awaited<ReturnType<typeof loadCharts>>, note?: string) => {
  const Impl = lazy(async () => ({ default: (await loadCharts())[name] as ComponentType<ChartProps> }))
  return function Chart({ series }: { series: Series }) {
    const interval = isDrawnByWeek(series.length) ? 'week' : 'day'
    const points = useMemo(() => (interval === 'week' ? byWeek(series) : byDay(series)), [series, interval])
    return (
      <Stack component="figure" gap="sm" m={0}>
        <figcaption>
          <Title order={3} size="h5">
            {title} per {interval}
          </Title>
          {note && (
            <Text size="xs" c="dimmed">
              {note}
            </Text>
          )}
        </figcaption>
        <Suspense fallback={<Skeleton h={240} />}>
          <Impl points={points} interval={interval} />
        </Suspense>
      </Stack>
    )
  }
}

export const TrafficChart = chart('Traffic', 'TrafficImpl')
export const RequestsChart = chart('Requests', 'RequestsImpl')
export const PeakTunnelsChart = chart(
  'Peak tunnels',
  'PeakTunnelsImpl',
  'Highest number of tunnels open at the same time',
)
