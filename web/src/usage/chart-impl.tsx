// Chart implementations, without animation and dots, so that long ranges draw fast.
import '@mantine/charts/styles.css'
import { AreaChart, BarChart } from '@mantine/charts'
import { useIsPhone } from '../components/use-is-phone.ts'
import { formatBytes, formatCount, formatDay } from '../format.ts'
import type { ChartProps } from './charts.tsx'
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
  // Recharts lays out hidden vertical grid lines too, and measures the label of every point.
  gridProps: { verticalCoordinatesGenerator: () => [] },
  // Keyboard and screen reader users have the table by day.
  'aria-hidden': true,
} as const

const noAnimation = { isAnimationActive: false } as const
const noAccessibilityLayer = { accessibilityLayer: false } as const

const tooltip = (interval: ChartProps['interval']) => ({
  // Recharts also calls this before the pointer is over a point.
  labelFormatter: (day: unknown) =>
    typeof day !== 'string' ? '' : interval === 'week' ? `Week of ${formatDay(day)}` : formatDay(day),
})

export function TrafficImpl({ points, interval }: ChartProps) {
  const { axis, margin } = timeAxis(points, useIsPhone() ? 'phone' : 'wide')
  const max = Math.max(...points.flatMap(({ bytesIn, bytesOut }) => [bytesIn, bytesOut]))
  return (
    <AreaChart
      {...shared}
      data={points}
      series={[
        { name: 'bytesOut', label: 'Bytes out', color: OUT },
        { name: 'bytesIn', label: 'Bytes in', color: IN },
      ]}
      // Linear: a curve would show values that did not occur.
      curveType="linear"
      withDots={false}
      withLegend
      fillOpacity={0.22}
      valueFormatter={formatBytes}
      xAxisProps={axis}
      yAxisProps={{ width: 72, ...byteAxis(max) }}
      areaProps={noAnimation}
      areaChartProps={{ ...noAccessibilityLayer, margin }}
      tooltipProps={tooltip(interval)}
    />
  )
}

export function RequestsImpl({ points, interval }: ChartProps) {
  const { axis, margin } = timeAxis(points, useIsPhone() ? 'phone' : 'half')
  return (
    <AreaChart
      {...shared}
      data={points}
      series={[{ name: 'requests', label: 'Requests', color: IN }]}
      curveType="linear"
      withDots={false}
      fillOpacity={0.22}
      valueFormatter={formatCount}
      xAxisProps={axis}
      yAxisProps={{ width: 56, ...countAxis(Math.max(...points.map(({ requests }) => requests))) }}
      areaProps={noAnimation}
      areaChartProps={{ ...noAccessibilityLayer, margin }}
      tooltipProps={tooltip(interval)}
    />
  )
}

export function PeakTunnelsImpl({ points, interval }: ChartProps) {
  const { axis, margin } = timeAxis(points, useIsPhone() ? 'phone' : 'half')
  return (
    <BarChart
      {...shared}
      data={points}
      series={[{ name: 'peakTunnels', label: 'Peak tunnels', color: OUT }]}
      valueFormatter={formatCount}
      xAxisProps={axis}
      yAxisProps={{ width: 56, ...countAxis(Math.max(...points.map(({ peakTunnels }) => peakTunnels))) }}
      barProps={noAnimation}
      barChartProps={{ ...noAccessibilityLayer, margin }}
      tooltipProps={tooltip(interval)}
    />
  )
}
