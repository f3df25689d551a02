// Alerts about edges that have not reported their tunnels for 5 minutes: to the operator, and to workspaces
// whose tunnels were open there. Any node may check: an alert is created once.

import { DAY_MS, MINUTE_MS } from '../../../lib/time.ts'
import {
  countTunnelsByWorkspace,
  insertOperatorAlert,
  isStillSilent,
  listSilentEdges,
  type SilentEdge,
} from '../../store/notices/alerts.ts'
import type { Run } from '../deletion-batches.ts'
import { toIso } from '../timestamps.ts'
import { type Alert, createAlert } from './alerts.ts'

const SILENT_MS = 5 * MINUTE_MS
/** An edge that has been silent for longer causes no alert. */
const SILENT_MAX_MS = DAY_MS
const EDGES_MAX = 100
const WORKSPACES_MAX = 1_000

export interface OperatorAlertDetail {
  subject: string
  text: string
}

interface EdgeAlertOptions {
  /** Whether the operator gets an email. */
  withMail: boolean
  /** For how long the database has been available to this node. */
  databaseUpForMs: () => number
  onSilent: (edge: SilentEdge) => void
}

type EdgeAlertRun = Pick<Run, 'services' | 'proceed'>

export async function alertSilentEdges(
  run: EdgeAlertRun,
  { withMail, databaseUpForMs, onSilent }: EdgeAlertOptions,
): Promise<void> {
  const silent = await listSilentEdges(run.services.store.db, {
    silentMs: SILENT_MS,
    silentMaxMs: SILENT_MAX_MS,
    limit: EDGES_MAX,
  })
  for (const edge of silent) {
    // No edge can report while the database is down, so all look silent when it is back.
    if (databaseUpForMs() < SILENT_MS) return
    if (await alertEdge(run, edge, withMail)) onSilent(edge)
  }
}

/**
 * Uses a transaction for each workspace, because tunnel clients connect to other edges meanwhile. The
 * operator's alert is created last: until it exists, a check repeats the missing ones. Returns whether this
 * run created it.
 */
async function alertEdge(run: EdgeAlertRun, edge: SilentEdge, withMail: boolean): Promise<boolean> {
  const { services } = run
  const { store } = services
  const open = await countTunnelsByWorkspace(store.db, edge.id, WORKSPACES_MAX)
  for (const [workspaceId, tunnels] of open) {
    if (!(await run.proceed())) return false
    const isSilent = await store.transaction(async (db) => {
      if (!(await isStillSilent(db, edge))) return false
      await createAlert(db, services, describeAlert(edge, workspaceId, tunnels))
      return true
    })
    if (!isSilent) return false
  }
  const detail = describeOperatorAlert(edge, [...open.values()])
  return store.transaction(
    async (db) =>
      (await isStillSilent(db, edge)) &&
      insertOperatorAlert(db, {
        kind: 'edge-silent',
        subject_id: edge.id,
        dedup_key: String(edge.lastSyncAt),
        created_at: services.clock(),
        detail: JSON.stringify(detail),
        attempts: 0,
        due_at: withMail ? 0 : null,
      }),
  )
}

function describeOperatorAlert(
  { id, name, lastSyncAt }: SilentEdge,
  open: readonly number[],
): OperatorAlertDetail {
  const tunnels = open.reduce((sum, count) => sum + count, 0)
  return {
    subject: `Adit edge ${name} is not reporting`,
    text:
      `The edge "${name}" (${id}) has not reported since ${toIso(lastSyncAt)}.\n` +
      `Open tunnels at that time: ${tunnels}. Affected workspaces: ${open.length}. Check that the edge is ` +
      'running and can reach the control plane.\n\nIf you have shut it down for good, revoke it: ' +
      `adit admin edge revoke ${id}\n`,
  }
}

function describeAlert({ id, name, lastSyncAt }: SilentEdge, workspaceId: string, tunnels: number): Alert {
  const lastReportAt = toIso(lastSyncAt)
  return {
    kind: 'edge-silent',
    workspaceId,
    subjectId: id,
    dedupKey: `${lastSyncAt} ${workspaceId}`,
    title: 'has tunnels on an edge that is not reporting',
    text:
      `The edge "${name}" has not reported since ${lastReportAt}. Open tunnels of the workspace at that ` +
      `time: ${tunnels}. Tunnel clients reconnect automatically once they can reach the edge.`,
    event: { workspaceId, type: 'edge.silent', data: { edge: { id, name }, lastReportAt, tunnels } },
  }
}
