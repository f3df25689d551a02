// A figure: its name, what it compares, its target and its measurement.

import type { Fixtures } from './fixtures.ts'
import type { Measured } from './rounds.ts'

export type Target = { atLeast: number } | { atMost: number }

export interface Figure {
  name: string
  /** The figure is the ratio of the two. */
  ours: string
  other: string
  unit: string
  target?: Target
  measure(fixtures: Fixtures): Promise<Measured>
}

export interface Result extends Measured {
  figure: Figure
  seconds: number
}

export function isMet({ ratio, figure: { target } }: Result): boolean | undefined {
  if (!target) return undefined
  return 'atLeast' in target ? ratio >= target.atLeast : ratio <= target.atMost
}
