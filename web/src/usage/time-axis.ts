// Days to write at an axis: evenly apart, today last. Chosen here, because recharts would measure the text of every day
// that it may leave out, and leave out any.
import { formatDay, formatDayShort } from '../format.ts'
import type { Series } from '../queries.ts'

/** Over so many days a day and month could be of either year. */
const WITHOUT_YEAR_MOST = 300

/** How many labels have room beside each other in a chart: with the year, or without. */
const ROOM = { wide: [5, 8], half: [2, 4], phone: [2, 3] } as const

export function timeAxis(series: Series, width: keyof typeof ROOM) {
  const withYear = series.length > WITHOUT_YEAR_MOST
  const most = ROOM[width][withYear ? 0 : 1]
  const step = Math.max(1, Math.ceil(series.length / most))
  const ticks = series.map(({ day }) => day).filter((_, index) => (series.length - 1 - index) % step === 0)
  return {
    axis: { ticks, tickFormatter: withYear ? formatDay : formatDayShort, interval: 0 },
    // Half of the last label stands beyond the last day.
    margin: { top: 8, right: withYear ? 40 : 24 },
  } as const
}
