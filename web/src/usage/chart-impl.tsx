// Draws series by day. Nothing moves and no point has a mark of its own, so that a year is drawn in one go.
import '@mantine/charts/styles.css'
import { AreaChart, BarChart } from '@mantine/charts'
import { useIsPhone } from '../components/use-is-phone.ts'
import { formatBytes, formatCount, formatDay } from '../format.ts'
import type { Series } from '../queries.ts'
import { timeAxis } from './time-axis.ts'
import { byteAxis, countAxis } from './value-axis.ts'

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

const still = { isAnimationActive: false } as const
const quiet = { accessibilityLayer: false } as const

/** Drawn figures need not be exact, and recharts knows numbers only. */
const drawn = (series: Series, pick: 'requests' | 'bytesIn' | 'bytesOut' | 'peakTunnels') =>
  series.map((entry) => Number(entry[pick]))

/** It is asked for before any day is pointed at, too. */
const tooltip = { labelFormatter: (day: unknown) => (typeof day === 'string' ? formatDay(day) : '') }

export function Bytes({ series }: { series: Series }) {
  const bytesIn = drawn(series, 'bytesIn')
  const bytesOut = drawn(series, 'bytesOut')
  const { axis, margin } = timeAxis(series, useIsPhone() ? 'phone' : 'wide')
  return (
    <AreaChart
      {...shared}
      data={series.map(({ day }, index) => ({ day, in: bytesIn[index], out: bytesOut[index] }))}
      series={[
        { name: 'out', label: 'Bytes out', color: OUT },
        { name: 'in', label: 'Bytes in', color: IN },
      ]}
      // Straight from day to day: a curve would show values that never were.
      curveType="linear"
      withDots={false}
      withLegend
      fillOpacity={0.22}
      valueFormatter={formatBytes}
      xAxisProps={axis}
      yAxisProps={{ width: 72, ...byteAxis(Math.max(...bytesIn, ...bytesOut)) }}
      areaProps={still}
      areaChartProps={{ ...quiet, margin }}
      tooltipProps={tooltip}
    />
  )
}

export function Requests({ series }: { series: Series }) {
  const requests = drawn(series, 'requests')
  const { axis, margin } = timeAxis(series, useIsPhone() ? 'phone' : 'half')
  return (
    <AreaChart
      {...shared}
      data={series.map(({ day }, index) => ({ day, requests: requests[index] }))}
      series={[{ name: 'requests', label: 'Requests', color: IN }]}
      curveType="linear"
      withDots={false}
      fillOpacity={0.22}
      valueFormatter={formatCount}
      xAxisProps={axis}
      yAxisProps={{ width: 56, ...countAxis(Math.max(...requests)) }}
      areaProps={still}
      areaChartProps={{ ...quiet, margin }}
      tooltipProps={tooltip}
    />
  )
}

/** Beyond this, bars are thinner than the gaps between them, and each costs as much as a whole line. */
const BARS_MOST = 90

export function Peak({ series }: { series: Series }) {
  const peak = drawn(series, 'peakTunnels')
  const { axis, margin } = timeAxis(series, useIsPhone() ? 'phone' : 'half')
  const asEither = {
    ...shared,
    data: series.map(({ day }, index) => ({ day, peak: peak[index] })),
    series: [{ name: 'peak', label: 'Peak tunnels', color: OUT }],
    valueFormatter: formatCount,
    xAxisProps: axis,
    yAxisProps: { width: 56, ...countAxis(Math.max(...peak)) },
    tooltipProps: tooltip,
  }
  if (series.length <= BARS_MOST)
    return <BarChart {...asEither} barProps={still} barChartProps={{ ...quiet, margin }} />
  return (
    <AreaChart
      {...asEither}
      curveType="step"
      withDots={false}
      fillOpacity={0.22}
      strokeWidth={1.5}
      areaProps={still}
      areaChartProps={{ ...quiet, margin }}
    />
  )
}
