// A figure is a value: what it is called, what it compares, how far it should reach, and how it is measured.
import type { Measured } from './rounds.ts'
import type { Workbench } from './workbench.ts'

export type Reach = { atLeast: number } | { atMost: number }

export interface Figure {
  name: string
  /** Whose ratio is the figure: the first to the second. */
  ours: string
  other: string
  unit: string
  reach?: Reach
  measure(bench: Workbench): Promise<Measured>
}

export interface Result extends Measured {
  figure: Figure
  seconds: number
}

export function isMet({ ratio, figure: { reach } }: Result): boolean | undefined {
  if (!reach) return undefined
  return 'atLeast' in reach ? ratio >= reach.atLeast : ratio <= reach.atMost
}
