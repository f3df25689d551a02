const plural = (count: number, unit: string) => `${count} ${unit}${count === 1 ? '' : 's'}`

/** A duration for messages, rounded up: `45 seconds`, `1 minute`, `3 hours`. */
export function formatDuration(seconds: number): string {
  if (seconds <= 60) return plural(Math.ceil(seconds), 'second')
  const minutes = Math.ceil(seconds / 60)
  return minutes < 120 ? plural(minutes, 'minute') : plural(Math.ceil(seconds / 3600), 'hour')
}
