// Alerts about edges that have not reported their tunnels for 5 minutes: to the operator, and to workspaces
// whose tunnels were open there. Any node may check: an alert is created once.
import {
  countTunnelsByWorkspace,
  insertOperatorAlert,
  listSilentEdges,
  type SilentEdge,
} from '../store/alerts.ts'
import { DAY_MS, MINUTE_MS } from '../time.ts'
import { createAlert } from './alerts.ts'
import type { Services } from './context.ts'
import { isoOf } from './timestamps.ts'

const SILENT_MS = 5 * MINUTE_MS
/** An edge that was gone before is not worth an alert. */
const SILENT_MAX_MS = DAY_MS
const EDGES_MAX = 100
const WORKSPACES_MAX = 1_000

export interface OperatorAlertDetail {
  subject: string
  text: string
}

export interface EdgeAlertOptions {
  /** Whether the operator gets an email. */
  withMail: boolean
  onSilent: (edge: SilentEdge) => void
}

export async function alertSilentEdges(
  services: Services,
  { withMail, onSilent }: EdgeAlertOptions,
): Promise<void> {
  const { store } = services
  const silent = await listSilentEdges(store.db, {
    silentMs: SILENT_MS,
    silentMaxMs: SILENT_MAX_MS,
    limit: EDGES_MAX,
  })
  for (const edge of silent) if (await alertEdge(services, edge, withMail)) onSilent(edge)
}

function alertEdge(services: Services, edge: SilentEdge, withMail: boolean): Promise<boolean> {
  const { id, name, lastSyncAt } = edge
  const lastReportAt = isoOf(lastSyncAt)
  return services.store.transaction(async (db) => {
    const open = await countTunnelsByWorkspace(db, id, WORKSPACES_MAX)
    const tunnels = [...open.values()].reduce((sum, count) => sum + count, 0)
    const detail: OperatorAlertDetail = {
      subject: `Edge ${name} of Adit does not report`,
      text:
        `The edge "${name}" (${id}) has not reported since ${lastReportAt}.\n` +
        `It had ${tunnels} open tunnels of ${open.size} workspaces then. Check that it runs, and that it ` +
        'reaches the control plane.\n\nIf it was stopped for good, revoke it: ' +
        `adit admin edge revoke ${id}\n`,
    }
    const isNew = await insertOperatorAlert(db, {
      kind: 'edge-silent',
      subject_id: id,
      threshold: String(lastSyncAt),
      created_at: services.clock(),
      detail: JSON.stringify(detail),
      attempts: 0,
      due_at: withMail ? 0 : null,
    })
    if (!isNew) return false
    for (const [workspaceId, count] of open)
      await createAlert(db, services, {
        kind: 'edge-silent',
        workspaceId,
        subjectId: id,
        threshold: `${lastSyncAt} ${workspaceId}`,
        title: 'has tunnels at an edge that does not report',
        text:
          `The edge "${name}" has not reported since ${lastReportAt}. ${count} of its tunnels were open there. ` +
          'Tunnel clients connect again when they reach it.',
        event: {
          workspaceId,
          type: 'edge.silent',
          data: { edge: { id, name }, lastReportAt, tunnels: count },
        },
      })
    return true
  })
}
