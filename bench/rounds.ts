// Scenarios measured in alternating rounds: A B, B A, A B … The speed of a machine varies over minutes, but
// little between two consecutive rounds; so each round gives a ratio, and the figure is the median of the
// ratios. Rounds in which the host of a virtual machine took much of its processors are repeated.
import { measureStolen } from './stolen.ts'

export interface Sample {
  value: number
  busy?: number | undefined
}

/** Round -1 is the warm-up. */
export type Scenario = (round: number) => Promise<Sample>

export interface Measured {
  ratio: number
  /** The smallest and the largest ratio of any round. */
  spread: [number, number]
  ours: number
  other: number
  rounds: number
  busy?: { ours: number; other: number }
  /** For the chart: throughput at each size, relative to the smallest. */
  series?: { size: number; relative: number }[]
  note?: string
}

export interface Timing {
  rounds: number
  roundS: number
  /** Longer, because the code is compiled then. */
  warmUpS: number
  /** Requests of a round, instead of a duration. */
  requests?: number
}

/** Of the whole run. The test of the bench shortens it. */
export const timing: Timing = { rounds: 5, roundS: 1, warmUpS: 2 }

export const secondsOf = (round: number, warmUpS = timing.warmUpS) => (round < 0 ? warmUpS : timing.roundS)

/** How long a round sends requests. */
export const untilOf = (round: number, warmUpS?: number) =>
  timing.requests ? { amount: timing.requests } : { seconds: secondsOf(round, warmUpS) }

/** Share of the processor time that a round needed; more distorts its ratio. */
const STOLEN_MAX = 0.1

/** The samples of each scenario, by round. At most as many rounds are repeated, so that a run ends. */
export async function alternate(scenarios: Scenario[], rounds = timing.rounds): Promise<Sample[][]> {
  const samples: Sample[][] = scenarios.map(() => [])
  let repeats = timing.requests ? 0 : rounds
  await runRound(scenarios, -1)
  for (let round = 0; round < rounds; ) {
    const stolen = measureStolen()
    const taken = await runRound(scenarios, round)
    if (stolen() > STOLEN_MAX && repeats > 0) {
      repeats -= 1
      continue
    }
    for (const [index, sample] of taken.entries()) samples[index]?.push(sample)
    round += 1
  }
  return samples
}

/** A sample of each scenario. */
async function runRound(scenarios: Scenario[], round: number): Promise<Sample[]> {
  const order = scenarios.map((_, index) => index)
  if (round % 2 !== 0) order.reverse()
  const samples: Sample[] = []
  for (const index of order) samples[index] = await (scenarios[index] as Scenario)(round)
  return samples
}

export async function compare(ours: Scenario, other: Scenario, rounds = timing.rounds): Promise<Measured> {
  const [a = [], b = []] = await alternate([ours, other], rounds)
  return measuredOf(a, b)
}

export function measuredOf(ours: Sample[], other: Sample[]): Measured {
  const ratios = ours.map(({ value }, round) => value / (other[round] as Sample).value)
  const busy = { ours: busyOf(ours), other: busyOf(other) }
  return {
    ratio: median(ratios),
    spread: [Math.min(...ratios), Math.max(...ratios)],
    ours: median(ours.map(({ value }) => value)),
    other: median(other.map(({ value }) => value)),
    rounds: ratios.length,
    ...(busy.ours !== undefined && busy.other !== undefined && { busy: busy as Required<Measured>['busy'] }),
  }
}

/** Of a figure that is measured once. */
export const onceOf = (ours: number, other: number): Measured => ({
  ratio: ours / other,
  spread: [ours / other, ours / other],
  ours,
  other,
  rounds: 1,
})

function busyOf(samples: Sample[]): number | undefined {
  const known = samples.flatMap(({ busy }) => (busy === undefined ? [] : [busy]))
  return known.length === 0 ? undefined : median(known)
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  return sorted.length % 2 === 1
    ? (sorted[Math.floor(middle)] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2
}
