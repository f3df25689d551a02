// `adit usage`: totals, and a bar for each day; several days share one where there are more than fit on a screen.
import type { Count } from '../client/index.ts'
import { type ApiInput, withApi } from './api.ts'
import { UsageError } from './errors.ts'
import type { Io } from './io.ts'

const BARS_MAX = 31
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB']
const whole = new Intl.NumberFormat('en-GB')

interface Day {
  day: string
  bytes: bigint
}

export async function show(input: ApiInput & { days: string | undefined }, io: Io): Promise<void> {
  const days = input.days === undefined ? 30 : readDays(input.days)
  const usage = await withApi(input, (client) => client.usage.read({ days }))
  const figures = usage as unknown as Record<string, Count | undefined>
  const series = usage.series.map((entry): Day => {
    const { day, bytes, totalBytes } = entry as { day: string; bytes?: Count; totalBytes?: Count }
    return { day: day.slice(0, 10), bytes: BigInt(bytes ?? totalBytes ?? 0) }
  })
  const bytesOf = (count: Count | undefined) => (count === undefined ? undefined : readable(BigInt(count)))
  const countOf = (count: Count | undefined) => count?.toLocaleString('en-GB')
  const totals: [name: string, value: string | undefined][] = [
    ['bytes', bytesOf(usage.totalBytes)],
    ['bytes in', bytesOf(figures.bytesIn)],
    ['bytes out', bytesOf(figures.bytesOut)],
    ['requests', countOf(figures.requests)],
    ['peak of tunnels', countOf(figures.peakTunnels)],
    ['tunnel events', countOf(figures.eventCount)],
    ['last seen', usage.lastSeen ?? 'never'],
  ]
  const lines = totals.flatMap(([name, value]) =>
    value === undefined ? [] : [`  ${name.padEnd(16)} ${value}`],
  )
  const text = [
    `The last ${days === 1 ? 'day' : `${days} days`}, in UTC`,
    ...lines,
    '',
    ...bars(series, io.terminal),
  ]
  io.data(usage, text.join('\n'))
}

function readDays(text: string): number {
  const days = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (days < 1 || days > 365) throw new UsageError('--days must be a whole number from 1 to 365.')
  return days
}

function bars(series: Day[], { columns, blocks }: Io['terminal']): string[] {
  const size = Math.ceil(series.length / BARS_MAX)
  const groups: Day[] = []
  for (let start = 0; start < series.length; start += size) {
    const group = series.slice(start, start + size)
    groups.push({ day: group[0]?.day as string, bytes: group.reduce((sum, { bytes }) => sum + bytes, 0n) })
  }
  const figures = groups.map(({ bytes }) => readable(bytes))
  const figureWidth = Math.max(...figures.map((figure) => figure.length))
  const room = columns - '2026-11-15'.length - figureWidth - 4
  const most = groups.reduce((max, { bytes }) => (bytes > max ? bytes : max), 1n)
  const lines = groups.map(({ day, bytes }, index) => {
    const eighths = Number((bytes * BigInt(room * 8)) / most)
    return `${day}  ${(figures[index] as string).padStart(figureWidth)}  ${bar(eighths, blocks)}`.trimEnd()
  })
  return size > 1 ? [`Each line is ${size} days, from the day named on.`, ...lines] : lines
}

const PARTS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

const bar = (eighths: number, blocks: boolean) =>
  blocks ? '█'.repeat(Math.floor(eighths / 8)) + PARTS[eighths % 8] : '#'.repeat(Math.round(eighths / 8))

function readable(bytes: bigint): string {
  let unit = 0
  let value = Number(bytes)
  for (; value >= 1023.95 && unit < UNITS.length - 1; unit++) value /= 1024
  return unit === 0 ? `${whole.format(bytes)} B` : `${value.toFixed(1)} ${UNITS[unit]}`
}
