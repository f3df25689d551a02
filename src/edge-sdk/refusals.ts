// Which refused items to send again.
import type { Receipt, Report } from './control-plane.ts'

type Refused = Receipt['refused'][number]

/**
 * `in_future` passes when the clocks agree, `too_large` and `too_many_epochs` when the operator resets the day; all of them
 * end as `too_old` at the latest. All other reasons are final, those of later control planes too.
 */
const temporary: readonly Refused['reason'][] = ['in_future', 'too_large', 'too_many_epochs']

export const isTemporary = ({ reason }: Refused): boolean => temporary.includes(reason)

/** The part of a report to send again; undefined where there is none. */
export function remainderOf({ epoch, ...lists }: Report, { refused }: Receipt): Report | undefined {
  const again = refused.filter(isTemporary)
  if (again.length === 0) return undefined
  const pick = <L extends Refused['list']>(list: L) => {
    const indexes = new Set(again.flatMap((one) => (one.list === list ? [one.index] : [])))
    return (lists[list] ?? []).filter((_, index) => indexes.has(index)) as NonNullable<Report[L]>
  }
  return { epoch, counters: pick('counters'), tunnels: pick('tunnels') }
}
