// Usage reports, as edges send them.
import { startOfDay } from '../../../src/lib/time.ts'
import type { Store } from '../../../src/server/store/engine/store.ts'
import { type Counter, noUsage, type ParsedReport } from '../../../src/server/store/engine/usage-report.ts'
import { commitReports } from '../../../src/server/store/usage/commit.ts'
import { createShardQueues } from '../../../src/server/store/usage/shard-queues.ts'
import type { TestServer } from './server.ts'

/** The current day, as reports have it. */
export const today = () => new Date().toISOString().slice(0, 10)

/** A counter of the default workspace, with zeros for what is not given. */
export const counter = (given: object) => ({
  workspace: 'acme',
  day: '2026-03-01',
  requests: 0,
  bytesIn: 0,
  bytesOut: 0,
  events: 0,
  ...given,
})

/** Merges a report without the limit of an edge. */
export const mergeReport = (store: Store, report: ParsedReport) =>
  createShardQueues(store, (reports) => commitReports(store, reports))(report)

/** Usage of the server's workspace, today if no day is given. */
export const addUsage = (
  { services, workspace }: TestServer,
  { edgeId = 'edge_1', ...given }: Partial<Counter> & { edgeId?: string },
) => {
  const day = startOfDay(services.clock())
  const counter = { workspaceId: workspace.id, day, ...noUsage, lastSeen: null, ...given }
  return mergeReport(services.store, { edgeId, epoch: 'e1', counters: [counter], tunnels: [] })
}
