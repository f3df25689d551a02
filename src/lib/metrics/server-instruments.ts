// The counters of `adit serve`.
import { DurationHistogram } from './instruments.ts'
import { RequestDurations } from './request-durations.ts'

export class ServerInstruments {
  readonly requests = new RequestDurations()
  /** How long changes took until they were effective on every node. */
  readonly propagationWait = new DurationHistogram()
  /** Transactions that merge usage reports. */
  readonly usageMerge = new DurationHistogram()
  usageReports = 0
  /** Items of usage reports, by outcome. */
  readonly usageItems = {
    accepted: 0,
    unknown_workspace: 0,
    in_future: 0,
    too_old: 0,
    too_large: 0,
    too_many_epochs: 0,
  }
  readonly mails = { sent: 0, failed: 0 }
  readonly webhookAttempts = { delivered: 0, failed: 0 }
}
