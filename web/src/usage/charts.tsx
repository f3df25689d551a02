// The charts, loaded when first wanted: what draws them weighs as much as the rest of the page.
import { Skeleton, Stack, Text, Title } from '@mantine/core'
import { type ComponentType, lazy, Suspense } from 'react'
import type { Series } from '../queries.ts'

const drawings = () => import('./chart-impl.tsx')

/** Ahead of time, while nothing else is to be done: what draws is large, and reading it in would hold up the first chart. */
export function preloadCharts(): () => void {
  const idle = window.requestIdleCallback?.(() => void drawings().catch(() => {}))
  return () => idle !== undefined && window.cancelIdleCallback(idle)
}

const chart = (title: string, pick: keyof Awaited<ReturnType<typeof drawings>>, note?: string) => {
  const Drawing = lazy(async () => ({
    default: (await drawings())[pick] as ComponentType<{ series: Series }>,
  }))
  return function Chart({ series }: { series: Series }) {
    return (
      <Stack component="figure" gap="sm" m={0}>
        <figcaption>
          <Title order={3} size="h5">
            {title}
          </Title>
          {note && (
            <Text size="xs" c="dimmed">
              {note}
            </Text>
          )}
        </figcaption>
        <Suspense fallback={<Skeleton h={240} />}>
          <Drawing series={series} />
        </Suspense>
      </Stack>
    )
  }
}

export const TrafficChart = chart('Bytes by day', 'Bytes')
export const RequestsChart = chart('Requests by day', 'Requests')
export const PeakTunnelsChart = chart('Peak tunnels by day', 'Peak', 'The most tunnels open at once')
