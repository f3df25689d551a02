// A timestamp as relative time, with the exact time in its tooltip.
import { useSyncExternalStore } from 'react'
import { formatRelativeTime, formatUtcSecond } from '../format.ts'

const TICK_MS = 30_000

function subscribe(notify: () => void): () => void {
  const timer = setInterval(notify, TICK_MS)
  return () => clearInterval(timer)
}

const now = () => Math.floor(Date.now() / TICK_MS) * TICK_MS

export function RelativeTime({ at }: { at: string }) {
  const nowMs = useSyncExternalStore(subscribe, now)
  return (
    <time dateTime={at} title={formatUtcSecond(at)}>
      {formatRelativeTime(at, nowMs)}
    </time>
  )
}
