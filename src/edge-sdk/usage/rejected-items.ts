// Selects the rejected items of a usage report to retry.
import type { Receipt, Report } from '../api.ts'

type RejectedItem = Receipt['rejected'][number]

/**
 * `in_future` resolves when the clocks agree, `too_large` and `too_many_epochs` when the operator resets the
 * day; all of them become `too_old` eventually. All other reasons are final, including those that later
 * control planes add.
 */
const temporary: readonly RejectedItem['reason'][] = ['in_future', 'too_large', 'too_many_epochs']

export const isTemporary = ({ reason }: RejectedItem): boolean => temporary.includes(reason)

/** The part of a report to retry; undefined if there is none. */
export function retryableItems({ epoch, ...lists }: Report, { rejected }: Receipt): Report | undefined {
  const retried = rejected.filter(isTemporary)
  if (retried.length === 0) return undefined
  const pick = <L extends RejectedItem['list']>(list: L) => {
    const indexes = new Set(retried.flatMap((item) => (item.list === list ? [item.index] : [])))
    return (lists[list] ?? []).filter((_, index) => indexes.has(index)) as NonNullable<Report[L]>
  }
  return { epoch, counters: pick('counters'), tunnels: pick('tunnels') }
}
