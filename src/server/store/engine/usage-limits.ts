// Limits of the usage that a report adds. Without them one faulty edge could fill a workspace's day to 63
// bits, so that all other reports are rejected, or grow the database by inventing epochs.
import type { Amounts, Day, Totals } from './usage-report.ts'

export const INT64_MAX = 2n ** 63n - 1n

/** The capacity of a column. */
export const NO_LIMIT: Totals = {
  requests: INT64_MAX,
  bytesIn: INT64_MAX,
  bytesOut: INT64_MAX,
  events: INT64_MAX,
}

/** Epochs of one edge in one workspace's day: enough for a restart every 15 minutes. */
export const EPOCHS_MAX = 100

export interface RejectedCounter extends Day {
  reason: 'too_large' | 'too_many_epochs' | 'too_old'
}

/**
 * The sum over the epochs of the edge is checked only above this value. Below, all epochs together cannot
 * exceed `edgeMax`, so a usual report need not read them. An edge can thus add up to twice `edgeMax`.
 */
export const uncheckedMaximum = (edgeMax: Totals): Totals => ({
  requests: edgeMax.requests / BigInt(EPOCHS_MAX),
  bytesIn: edgeMax.bytesIn / BigInt(EPOCHS_MAX),
  bytesOut: edgeMax.bytesOut / BigInt(EPOCHS_MAX),
  events: edgeMax.events / BigInt(EPOCHS_MAX),
})

export const exceeds = ({ requests, bytesIn, bytesOut, events }: Amounts, max: Amounts) =>
  requests > max.requests || bytesIn > max.bytesIn || bytesOut > max.bytesOut || events > max.events
