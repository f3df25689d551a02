// Formats numbers and results.
import { isMet, type Result, type Target } from '../figure.ts'

/** Three significant digits. */
export function short(value: number): string {
  if (value >= 1000) return Math.round(value).toLocaleString('en')
  if (value >= 100) return value.toFixed(0)
  return value.toFixed(value >= 10 ? 1 : 2)
}

export const formatTarget = (target: Target | undefined) =>
  !target ? '' : 'atLeast' in target ? `≥ ${target.atLeast}` : `≤ ${target.atMost}`

export const formatVerdict = (result: Result) =>
  ({ true: 'yes', false: 'no', undefined: '' })[String(isMet(result)) as 'true' | 'false' | 'undefined']

export const formatSpread = ({ spread: [least, most], rounds }: Result) =>
  rounds === 1 ? '' : `${short(least)}–${short(most)}`

const percent = (part: number) => `${Math.round(part * 100)} %`

export const formatBusy = ({ busy }: Result) => (busy ? `${percent(busy.ours)}, ${percent(busy.other)}` : '')

export const formatValues = ({ ours, other, figure: { unit } }: Result) =>
  `${short(ours)} to ${short(other)} ${unit}`
