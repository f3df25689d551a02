// For the operator: lists all usage that one edge has reported, and deletes it, e.g. after its credential was
// stolen.

import { DAY_MS, startOfDay } from '../../../lib/time.ts'
import { type ListedWorkspace, listEdgeWorkspaces } from '../../store/tunnels/edge-workspaces.ts'
import { getEdge } from '../../store/tunnels/edges.ts'
import { listReportedDays, type ReportedDay, resetDay } from '../../store/usage/reset.ts'
import { awaitPropagation, publishChange } from '../../verification/propagation.ts'
import { writeAudit } from '../audit/entries.ts'
import type { Actor, Services } from '../context.ts'
import { readSlices, SLICE_ROWS } from '../pagination.ts'
import { DAYS_BACK_MAX } from './reports.ts'

interface ReportedWorkspace {
  workspace: ListedWorkspace
  days: ReportedDay[]
}

export interface EdgeUsage {
  workspaces: number
  days: number
  requests: bigint
  bytes: bigint
}

/** Workspaces for which the edge has reported usage of days that reports can still change. */
async function* listReported({ store, clock }: Services, edgeId: string): AsyncGenerator<ReportedWorkspace> {
  const today = startOfDay(clock())
  const range = { from: today - DAYS_BACK_MAX * DAY_MS, until: today + 2 * DAY_MS }
  const read = (after: ListedWorkspace | undefined) =>
    listEdgeWorkspaces(store.db, edgeId, { after: after?.id, limit: SLICE_ROWS })
  for await (const workspaces of readSlices<ListedWorkspace>(read))
    for (const workspace of workspaces) {
      const days = await listReportedDays(store.db, { workspaceId: workspace.id, edgeId, ...range })
      if (days.length > 0) yield { workspace, days }
    }
}

export async function sumEdgeUsage(services: Services, edgeId: string): Promise<EdgeUsage> {
  const sums: EdgeUsage = { workspaces: 0, days: 0, requests: 0n, bytes: 0n }
  for await (const { days } of listReported(services, edgeId)) {
    sums.workspaces += 1
    sums.days += days.length
    for (const { requests, bytes } of days) {
      sums.requests += requests
      sums.bytes += bytes
    }
  }
  return sums
}

/**
 * Uses one transaction for each workspace, and can be repeated after an interruption. Nodes then compute
 * quota levels again, so that deleted usage does not block workspaces.
 */
export async function resetEdgeUsage(services: Services, actor: Actor, edgeId: string) {
  const { name } = await getEdge(services.store.db, edgeId)
  const reset = { workspaces: 0, days: 0 }
  let last: Awaited<ReturnType<typeof publishChange>> | undefined
  for await (const { workspace, days } of listReported(services, edgeId)) {
    const isDistributed = await services.store.usageShards.isDistributed()
    last = await services.store.transaction(async (db) => {
      for (const { day } of days)
        await resetDay({ db, isDistributed }, { workspaceId: workspace.id, day }, edgeId)
      await writeAudit(db, services, {
        workspaceId: workspace.id,
        actor,
        action: 'usage.reset',
        target: { id: edgeId, name: `${days.length} days of edge ${name}` },
      })
      return publishChange(db, services, { kind: 'workspace-quota', subjectId: workspace.id })
    })
    reset.workspaces += 1
    reset.days += days.length
  }
  // A node that has applied the last change has applied all.
  if (last) await awaitPropagation(services, last)
  return reset
}
