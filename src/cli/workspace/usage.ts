// `adit usage`: totals and a bar chart by day. If the days do not fit on a screen, several share a bar.
import type { Count } from '../../client/index.ts'
import { type ApiInput, withApi } from '../api.ts'
import { formatBytes } from '../bytes.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'

const BARS_MAX = 31

interface Day {
  day: string
  bytes: bigint
}

export async function show(input: ApiInput & { days: string | undefined }, io: Io): Promise<void> {
  const days = input.days === undefined ? 30 : readDays(input.days)
  const usage = await withApi(input, (client) => client.usage.read({ days }))
  const counts = usage as unknown as Record<string, Count | undefined>
  const series = usage.series.map((entry): Day => {
    const { day, bytes, totalBytes } = entry as { day: string; bytes?: Count; totalBytes?: Count }
    return { day: day.slice(0, 10), bytes: BigInt(bytes ?? totalBytes ?? 0) }
  })
  const formatByteCount = (count: Count | undefined) =>
    count === undefined ? undefined : formatBytes(BigInt(count))
  const formatCount = (count: Count | undefined) => count?.toLocaleString('en-US')
  const totals: [name: string, value: string | undefined][] = [
    ['Traffic', formatByteCount(usage.totalBytes)],
    ['Bytes in', formatByteCount(counts.bytesIn)],
    ['Bytes out', formatByteCount(counts.bytesOut)],
    ['Requests', formatCount(counts.requests)],
    ['Peak tunnels', formatCount(counts.peakTunnels)],
    ['Tunnel events', formatCount(counts.eventCount)],
    ['Last activity', io.time(usage.lastSeen)],
  ]
  const lines = totals.flatMap(([name, value]) =>
    value === undefined ? [] : [`  ${name.padEnd(15)}${value}`],
  )
  const text = [
    `Last ${days === 1 ? 'day' : `${days} days`} (UTC; today is partial)`,
    ...lines,
    '',
    ...bars(series, io.terminal),
  ]
  io.data(usage, text.join('\n'))
}

function readDays(text: string): number {
  const days = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (days < 1 || days > 365) throw new UsageError(`Invalid --days "${text}" (expected 1–365).`)
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
  const most = groups.reduce((max, { bytes }) => (bytes > max ? bytes : max), 1n)
  const lines = groups.map(({ day, bytes }, index) => {
    const eighths = Number((bytes * BigInt(room * 8)) / most)
    return `${day}  ${(amounts[index] as string).padStart(amountWidth)}  ${bar(eighths, blocks)}`.trimEnd()
  })
  return size > 1 ? [`Each line is ${size} days, starting with the day shown.`, ...lines] : lines
}

const PARTS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

const bar = (eighths: number, blocks: boolean) =>
  blocks ? '█'.repeat(Math.floor(eighths / 8)) + PARTS[eighths % 8] : '#'.repeat(Math.round(eighths / 8))
