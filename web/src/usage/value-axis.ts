// Round marks for an axis of figures, all written in one unit.
import { BYTE_UNITS } from '../format.ts'

const MARKS_MOST = 4

export interface ValueAxis {
  ticks: number[]
  domain: [number, number]
  tickFormatter: (value: number) => string
}

const plain = new Intl.NumberFormat('en-GB', { maximumFractionDigits: 2 })

/** From zero to the first mark that is not below `most`. */
function axis(most: number, step: number, nameOf: (top: number) => [unit: number, name: string]): ValueAxis {
  const count = Math.max(1, Math.ceil(most / step))
  const ticks = Array.from({ length: count + 1 }, (_, index) => index * step)
  const [unit, name] = nameOf(count * step)
  const tickFormatter = (value: number) => (value === 0 ? '0' : `${plain.format(value / unit)}${name}`)
  return { ticks, domain: [0, count * step], tickFormatter }
}

const THOUSANDS: [from: number, unit: number, name: string][] = [
  [1e12, 1e12, 'T'],
  [1e9, 1e9, 'B'],
  [1e6, 1e6, 'M'],
  [1e4, 1e3, 'K'],
]

/** Steps of 1, 2, 2.5 or 5 of a power of ten, and never a part of one thing. */
export function countAxis(most: number): ValueAxis {
  const least = Math.max(1, most / MARKS_MOST)
  const power = 10 ** Math.floor(Math.log10(least))
  const steps = power === 1 ? [1, 2, 5, 10] : [1, 2, 2.5, 5, 10]
  const step = power * (steps.find((each) => each * power >= least) ?? 10)
  return axis(most, step, (top) => {
    const [, unit, name] = THOUSANDS.find(([from]) => top >= from) ?? [0, 1, '']
    return [unit, name]
  })
}

/** Halves and doubles of a unit, where a chart would mark off thousands. */
export function byteAxis(most: number): ValueAxis {
  const step = 2 ** Math.max(0, Math.ceil(Math.log2(Math.max(1, most) / MARKS_MOST)))
  return axis(most, step, (top) => {
    const power = Math.min(BYTE_UNITS.length - 1, Math.floor(Math.log2(top) / 10))
    return [1024 ** power, ` ${BYTE_UNITS[power]}`]
  })
}
