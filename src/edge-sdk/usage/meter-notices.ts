// Log lines about usage reports: when they fail or are rejected, and when that ends.
import type { Receipt } from '../api.ts'
import { createNoticeOnce } from '../notice-once.ts'

interface ReportResult {
  sent: number
  rejected: Receipt['rejected']
  failures: unknown[]
  /** How many times usage was not counted, since the start. */
  lost: number
}

export function createNotices(onNotice: (line: string) => void, folder: string) {
  const disk = createNoticeOnce(onNotice, `Writing usage to ${folder} again.`)
  const outage = createNoticeOnce(onNotice, 'Reporting usage again.')
  const rejection = createNoticeOnce(onNotice, 'The control plane accepts all usage again.')
  const limit = createNoticeOnce(onNotice, 'Counting all usage again.')
  let lostBefore = 0
  return {
    disk,
    update({ sent, rejected, failures, lost }: ReportResult) {
      const [failure] = failures
      if (failure === undefined) outage.end()
      else outage.begin(`Failed to report usage, kept in ${folder}: ${(failure as Error).message}`)
      const reasons = [...new Set(rejected.map(({ reason }) => reason))].sort().join(', ')
      if (reasons) rejection.begin(`The control plane rejected part of the usage: ${reasons}.`)
      else if (sent > 0 && failure === undefined) rejection.end()
      if (lost > lostBefore)
        limit.begin('Too much unreported usage: usage of further workspaces is not counted.')
      else limit.end()
      lostBefore = lost
    },
  }
}
