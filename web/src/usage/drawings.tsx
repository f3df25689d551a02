// Draws series by day. Nothing moves and no point has a mark of its own, so that a year is drawn in one go.
import '@mantine/charts/styles.css'
import { AreaChart, BarChart } from '@mantine/charts'
import { longDay, readableBytes, shortCount, shortDay } from '../figures.ts'
import { byteTicks } from './byte-ticks.ts'
import type { Series } from './charts.tsx'

const IN = 'var(--adit-chart-in)'
const OUT = 'var(--adit-chart-out)'

const shared = {
  h: 240,
  dataKey: 'day',
  gridAxis: 'x',
  tickLine: 'none',
  strokeDasharray: '3 4',
  tooltipAnimationDuration: 0,
  // Lines that are not drawn would be laid out all the same, and the text of every day measured for it.
  gridProps: { verticalCoordinatesGenerator: () => [] },
  // The table of figures is the way for the keyboard and for screen readers.
  'aria-hidden': true,
} as const

const MARKS_MOST = 8

/** Days to write at the axis. Chosen here, because recharts measures the text of every day that it may leave out. */
function dayAxis(series: Series) {
  const step = Math.max(1, Math.ceil(series.length / MARKS_MOST))
  const ticks = series.map(({ day }) => day).filter((_, index) => (series.length - 1 - index) % step === 0)
  return { ticks, tickFormatter: shortDay, interval: 'preserveEnd', minTickGap: 12 } as const
}

const still = { isAnimationActive: false } as const
const quiet = { accessibilityLayer: false, margin: { top: 8, right: 12 } } as const

/** Drawn figures need not be exact, and recharts knows numbers only. */
const drawn = (series: Series, pick: 'requests' | 'bytesIn' | 'bytesOut' | 'peakTunnels') =>
  series.map((entry) => Number(entry[pick]))

/** It is asked for before any day is pointed at, too. */
const tooltip = { labelFormatter: (day: unknown) => (typeof day === 'string' ? longDay(day) : '') }

export function Bytes({ series }: { series: Series }) {
  const bytesIn = drawn(series, 'bytesIn')
  const bytesOut = drawn(series, 'bytesOut')
  const ticks = byteTicks(Math.max(...bytesIn, ...bytesOut))
  return (
    <AreaChart
      {...shared}
      data={series.map(({ day }, index) => ({ day, in: bytesIn[index], out: bytesOut[index] }))}
      series={[
        { name: 'out', label: 'Bytes out', color: OUT },
        { name: 'in', label: 'Bytes in', color: IN },
      ]}
      curveType="monotone"
      withDots={false}
      withLegend
      fillOpacity={0.22}
      valueFormatter={readableBytes}
      xAxisProps={dayAxis(series)}
      yAxisProps={{ width: 72, ticks, domain: [0, ticks.at(-1) ?? 1] }}
      areaProps={still}
      areaChartProps={quiet}
      tooltipProps={tooltip}
    />
  )
}

export function Requests({ series }: { series: Series }) {
  const requests = drawn(series, 'requests')
  return (
    <AreaChart
      {...shared}
      data={series.map(({ day }, index) => ({ day, requests: requests[index] }))}
      series={[{ name: 'requests', label: 'Requests', color: IN }]}
      curveType="monotone"
      withDots={false}
      fillOpacity={0.22}
      valueFormatter={shortCount}
      xAxisProps={dayAxis(series)}
      yAxisProps={{ width: 56, allowDecimals: false }}
      areaProps={still}
      areaChartProps={quiet}
      tooltipProps={tooltip}
    />
  )
}

/** Beyond this, bars are thinner than the gaps between them, and each costs as much as a whole line. */
const BARS_MOST = 90

export function Peak({ series }: { series: Series }) {
  const peak = drawn(series, 'peakTunnels')
  const asEither = {
    ...shared,
    data: series.map(({ day }, index) => ({ day, peak: peak[index] })),
    series: [{ name: 'peak', label: 'Peak tunnels', color: OUT }],
    valueFormatter: shortCount,
    xAxisProps: dayAxis(series),
    yAxisProps: { width: 56, allowDecimals: false },
    tooltipProps: tooltip,
  }
  if (series.length <= BARS_MOST) return <BarChart {...asEither} barProps={still} barChartProps={quiet} />
  return (
    <AreaChart
      {...asEither}
      curveType="step"
      withDots={false}
      fillOpacity={0.22}
      strokeWidth={1.5}
      areaProps={still}
      areaChartProps={quiet}
    />
  )
}
