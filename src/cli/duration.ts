// Durations on a terminal, in at most 8 characters for three weeks: `812 ms`, `42.5 s`, `7m 05s`, `26h 40m`.
export function formatDuration(ms: number): string {
  if (ms < 9_999.5) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m ${pad(seconds % 60)}s`
  const minutes = Math.round(seconds / 60)
  return `${Math.floor(minutes / 60)}h ${pad(minutes % 60)}m`
}

const pad = (value: number) => String(value).padStart(2, '0')
