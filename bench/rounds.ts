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
  note?: string
}

interface Timing {
  rounds: number
  roundS: number
  /** Longer, because the code is compiled then. */
  warmUpS: number
  /** Requests of a round, instead of a duration. */
  requests?: number
}

/** The timing of the whole run. The test of the bench shortens it. */
export const timing: Timing = { rounds: 5, roundS: 1, warmUpS: 2 }

export const roundSeconds = (round: number, warmUpS = timing.warmUpS) => (round < 0 ? warmUpS : timing.roundS)

/** How long a round sends requests. */
export const roundLimit = (round: number, warmUpS?: number) =>
  timing.requests ? { amount: timing.requests } : { seconds: roundSeconds(round, warmUpS) }

/** Share of the processor time that a round needed; more distorts its ratio. */
const STOLEN_MAX = 0.1

/** Measures both in turn. At most as many rounds are repeated, so that a run ends. */
export async function compare(ours: Scenario, other: Scenario, rounds = timing.rounds): Promise<Measured> {
  const samples = { ours: [] as Sample[], other: [] as Sample[] }
  let repeats = timing.requests ? 0 : rounds
  await runRound(ours, other, -1)
  for (let round = 0; round < rounds; ) {
    const stolen = measureStolen()
    const samplePair = await runRound(ours, other, round)
    if (stolen() > STOLEN_MAX && repeats > 0) {
      repeats -= 1
      continue
    }
    samples.ours.push(samplePair.ours)
    samples.other.push(samplePair.other)
    round += 1
  }
  return summarize(samples.ours, samples.other)
}

async function runRound(ours: Scenario, other: Scenario, round: number) {
  if (round % 2 === 0) return { ours: await ours(round), other: await other(round) }
  const second = await other(round)
  return { ours: await ours(round), other: second }
}

function summarize(ours: Sample[], other: Sample[]): Measured {
  const ratios = ours.map(({ value }, round) => value / (other[round] as Sample).value)
  const busy = { ours: medianBusy(ours), other: medianBusy(other) }
  return {
    ratio: median(ratios),
    spread: [Math.min(...ratios), Math.max(...ratios)],
    ours: median(ours.map(({ value }) => value)),
    other: median(other.map(({ value }) => value)),
    rounds: ratios.length,
    ...(busy.ours !== undefined && busy.other !== undefined && { busy: busy as Required<Measured>['busy'] }),
  }
}

/** The result of a figure that is measured once. */
export const singleMeasurement = (ours: number, other: number): Measured => ({
  ratio: ours / other,
  spread: [ours / other, ours / other],
  ours,
  other,
  rounds: 1,
})

function medianBusy(samples: Sample[]): number | undefined {
  const shares = samples.flatMap(({ busy }) => (busy === undefined ? [] : [busy]))
  return shares.length === 0 ? undefined : median(shares)
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  return sorted.length % 2 === 1
    ? (sorted[Math.floor(middle)] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2
}
