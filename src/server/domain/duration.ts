const UNITS = [
  { name: 'second', seconds: 1, max: 60 },
  { name: 'minute', seconds: 60, max: 119 },
  { name: 'hour', seconds: 3600, max: Number.POSITIVE_INFINITY },
]

/** A duration for messages, rounded up: `45 seconds`, `1 minute`, `3 hours`. */
export function formatDuration(seconds: number): string {
  const { count, name } = UNITS.map((unit) => ({ ...unit, count: Math.ceil(seconds / unit.seconds) })).find(
    ({ count, max }) => count <= max,
  ) as { count: number; name: string }
  return `${count} ${name}${count === 1 ? '' : 's'}`
}
