// A moment: how long ago, with the exact time on hover.
import { useSyncExternalStore } from 'react'
import { formatRelativeTime, formatUtcSecond } from '../format.ts'

const TICK_MS = 30_000

function onTick(tell: () => void): () => void {
  const timer = setInterval(tell, TICK_MS)
  return () => clearInterval(timer)
}

const now = () => Math.floor(Date.now() / TICK_MS) * TICK_MS

export function RelativeTime({ at }: { at: string }) {
  const nowMs = useSyncExternalStore(onTick, now)
  return (
    <time dateTime={at} title={formatUtcSecond(at)}>
      {formatRelativeTime(at, nowMs)}
    </time>
  )
}
