// Ticks of a value axis: round numbers, all in the same unit.
import { BYTE_UNITS } from '../format.ts'

const MAX_TICKS = 4

interface ValueAxis {
  ticks: number[]
  domain: [number, number]
  tickFormatter: (value: number) => string
}

const twoDecimals = new Intl.NumberFormat('en-US', { maximumFractionDigits: 2 })

/** Ticks from zero to the first one that is at least `max`. */
function axis(max: number, step: number, unitFor: (top: number) => [unit: number, name: string]): ValueAxis {
  const count = Math.max(1, Math.ceil(max / step))
  const ticks = Array.from({ length: count + 1 }, (_, index) => index * step)
  const [unit, name] = unitFor(count * step)
  const tickFormatter = (value: number) => (value === 0 ? '0' : `${twoDecimals.format(value / unit)}${name}`)
  return { ticks, domain: [0, count * step], tickFormatter }
}

const THOUSANDS: [from: number, unit: number, name: string][] = [
  [1e12, 1e12, 'T'],
  [1e9, 1e9, 'B'],
  [1e6, 1e6, 'M'],
  [1e4, 1e3, 'K'],
]

/** Steps of 1, 2, 2.5 or 5 times a power of ten, and always whole numbers. */
export function countAxis(max: number): ValueAxis {
  const minStep = Math.max(1, max / MAX_TICKS)
  const power = 10 ** Math.floor(Math.log10(minStep))
  const steps = power === 1 ? [1, 2, 5, 10] : [1, 2, 2.5, 5, 10]
  const step = power * (steps.find((each) => each * power >= minStep) ?? 10)
  return axis(max, step, (top) => {
    const [, unit, name] = THOUSANDS.find(([from]) => top >= from) ?? [0, 1, '']
    return [unit, name]
  })
}

/** Steps that are powers of two, to suit binary units. */
export function byteAxis(max: number): ValueAxis {
  const step = 2 ** Math.max(0, Math.ceil(Math.log2(Math.max(1, max) / MAX_TICKS)))
  return axis(max, step, (top) => {
    const power = Math.min(BYTE_UNITS.length - 1, Math.floor(Math.log2(top) / 10))
    return [1024 ** power, ` ${BYTE_UNITS[power]}`]
  })
}
