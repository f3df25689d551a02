// `adit usage`: totals and a bar chart by day. If the days do not fit on a screen, several share a bar.
import type { Client, Count } from '../../client/index.ts'
import { USAGE_DAYS } from '../../contract/limits.ts'
import { type ApiInput, withApi } from '../api.ts'
import { formatBytes } from '../bytes.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'

const BARS_MAX = 31

type Usage = Awaited<ReturnType<Client['usage']['read']>>

interface Day {
  day: string
  bytes: bigint
}

export async function show(input: ApiInput & { days: string | undefined }, io: Io): Promise<void> {
  const days = input.days === undefined ? USAGE_DAYS.default : readDays(input.days)
  const usage = await withApi(input, (client) => client.usage.read({ days }))
  const series = usage.series.map((entry): Day => {
    // Variant A of the API has `bytes` for each day, variant B `totalBytes`.
    const { day, bytes, totalBytes } = entry as { day: string; bytes?: Count; totalBytes?: Count }
    return { day: day.slice(0, 10), bytes: BigInt(bytes ?? totalBytes ?? 0) }
  })
  const lines = totals(usage, io).map(([name, value]) => `  ${name.padEnd(15)}${value}`)
  const text = [
    `Usage of the last ${days === 1 ? 'day' : `${days} days`} (UTC), including today so far`,
    '',
    ...lines,
    '',
    ...bars(series, io.terminal),
  ]
  io.data(usage, text.join('\n'))
}

/** The totals that the server has: they depend on its variant of the API. */
function totals(usage: Usage, io: Io): [name: string, value: string][] {
  const counts = usage as unknown as Record<string, Count | undefined>
  const bytes = (name: string) => formatBytes(BigInt(counts[name] ?? 0))
  const number = (name: string) => counts[name]?.toLocaleString('en-US')
  const all: [key: string, name: string, value: string][] = [
    ['totalBytes', 'Traffic', `${bytes('totalBytes')} in both directions`],
    ['bytesIn', 'Bytes in', `${bytes('bytesIn')} received`],
    ['bytesOut', 'Bytes out', `${bytes('bytesOut')} sent`],
    ['requests', 'Requests', `${number('requests')}`],
    ['peakTunnels', 'Peak tunnels', `${number('peakTunnels')} open at the same time`],
    ['eventCount', 'Tunnel events', `${number('eventCount')} (opened, closed or rejected)`],
    ['lastSeen', 'Last activity', io.time(usage.lastSeen)],
  ]
  return all.flatMap(([key, name, value]) => (key in usage ? [[name, value]] : []))
}

function readDays(text: string): number {
  const days = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (days < 1 || days > USAGE_DAYS.max)
    throw new UsageError(`Invalid --days "${text}" (expected 1–${USAGE_DAYS.max}).`)
  return days
}

function bars(series: Day[], { columns, blocks }: Io['terminal']): string[] {
  const size = Math.ceil(series.length / BARS_MAX)
  const groups: Day[] = []
  for (let start = 0; start < series.length; start += size) {
    const group = series.slice(start, start + size)
    groups.push({ day: group[0]?.day as string, bytes: group.reduce((sum, { bytes }) => sum + bytes, 0n) })
  }
  const amounts = groups.map(({ bytes }) => formatBytes(bytes))
  const amountWidth = Math.max(...amounts.map((amount) => amount.length))
  const room = columns - '2026-11-15'.length - amountWidth - 4
  const maxBytes = groups.reduce((max, { bytes }) => (bytes > max ? bytes : max), 1n)
  const lines = groups.map(({ day, bytes }, index) => {
    const eighths = Number((bytes * BigInt(room * 8)) / maxBytes)
    return `${day}  ${(amounts[index] as string).padStart(amountWidth)}  ${bar(eighths, blocks)}`.trimEnd()
  })
  return [`Traffic per ${size > 1 ? `${size} days, from the day shown` : 'day'}`, ...lines]
}

const PARTS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

const bar = (eighths: number, blocks: boolean) =>
  blocks ? '█'.repeat(Math.floor(eighths / 8)) + PARTS[eighths % 8] : '#'.repeat(Math.round(eighths / 8))
