// A figure is a value: what it is called, what it compares, how far it should get, and how it is measured.

import type { Workbench } from './fixtures.ts'
import type { Measured } from './rounds.ts'

export type Target = { atLeast: number } | { atMost: number }

export interface Figure {
  name: string
  /** Whose ratio is the figure: the first to the second. */
  ours: string
  other: string
  unit: string
  target?: Target
  measure(bench: Workbench): Promise<Measured>
}

export interface Result extends Measured {
  figure: Figure
  seconds: number
}

export function isMet({ ratio, figure: { target } }: Result): boolean | undefined {
  if (!target) return undefined
  return 'atLeast' in target ? ratio >= target.atLeast : ratio <= target.atMost
}
