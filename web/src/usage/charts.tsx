// The charts, loaded when first wanted: what draws them weighs as much as the rest of the page.
import { Skeleton, Stack, Text, Title } from '@mantine/core'
import { type ComponentType, lazy, Suspense } from 'react'
import type { Answer } from '../api.ts'

export type Series = Answer<'usage.read'>['series']

const drawings = () => import('./drawings.tsx')

const chart = (title: string, note: string, pick: keyof Awaited<ReturnType<typeof drawings>>) => {
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
          <Text size="xs" c="dimmed">
            {note}
          </Text>
        </figcaption>
        <Suspense fallback={<Skeleton h={240} />}>
          <Drawing series={series} />
        </Suspense>
      </Stack>
    )
  }
}

export const BytesByDay = chart('Bytes by day', 'In and out, by day of UTC', 'Bytes')
export const RequestsByDay = chart('Requests by day', 'By day of UTC', 'Requests')
export const PeakByDay = chart('Peak tunnels by day', 'The most tunnels open at once', 'Peak')
