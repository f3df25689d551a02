// Whether a list that is polled is up to date.
import { Group, Text } from '@mantine/core'
import { useEffect, useState } from 'react'
import { formatUtcSecond } from '../format.ts'
import classes from './live-status.module.css'

/** Three polls. */
const STALE_AFTER_MS = 15_000

interface LiveStatusProps {
  /** `failureReason`: why the last poll failed. */
  query: { dataUpdatedAt: number; failureReason: Error | null }
}

export function LiveStatus({ query: { dataUpdatedAt, failureReason } }: LiveStatusProps) {
  const isOld = useIsOlderThan(dataUpdatedAt, STALE_AFTER_MS)
  const isStale = isOld || failureReason !== null
  if (dataUpdatedAt === 0) return null
  return (
    <Group gap={6} wrap="nowrap" role="status" title="Updated every 5 seconds while this page is visible">
      <span className={classes.dot} data-stale={isStale || undefined} />
      <Text size="sm" c="dimmed">
        {isStale
          ? `Out of date: last updated ${formatUtcSecond(new Date(dataUpdatedAt).toISOString())}`
          : 'Live'}
      </Text>
    </Group>
  )
}

function useIsOlderThan(atMs: number, ageMs: number): boolean {
  const [olderAtMs, setOlderAtMs] = useState<number | null>(null)
  useEffect(() => {
    const timer = setTimeout(() => setOlderAtMs(atMs), atMs + ageMs - Date.now())
    return () => clearTimeout(timer)
  }, [atMs, ageMs])
  return olderAtMs === atMs
}
