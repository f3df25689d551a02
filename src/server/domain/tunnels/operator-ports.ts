// For the operator: lists the ports of TCP tunnels, releases them, and is told before none is left.
import { portRetentionMs } from '../../../lib/net/tcp-ports.ts'
import { findOperatorAlert, insertOperatorAlert } from '../../store/notices/alerts.ts'
import {
  countPorts,
  deletePort,
  type ListedPort,
  listPorts,
  lockPort,
} from '../../store/tunnels/tcp-ports.ts'
import { getWorkspace } from '../../store/workspaces.ts'
import { writeAudit } from '../audit/entries.ts'
import type { Actor, Services } from '../context.ts'
import { Fault } from '../fault.ts'
import type { OperatorAlertDetail } from '../notices/edge-alerts.ts'
import { readSlices, SLICE_ROWS } from '../pagination.ts'
import { toIso } from '../timestamps.ts'

/** While a larger share of the range is assigned, the operator is told once a month. */
const SCARCE = 0.8

export interface PortUse {
  assigned: number
  total: number
}

/** How many ports of the range are assigned; undefined if there are no TCP tunnels. */
export async function readPortUse({ store, limits }: Services): Promise<PortUse | undefined> {
  const { range } = limits.tcpPorts
  return range && { assigned: await countPorts(store.db, range), total: range.last - range.first + 1 }
}

/** In slices, by port. */
export async function* listAllPorts({ store, limits }: Services) {
  const read = (last: ListedPort | undefined) =>
    listPorts(store.db, { after: last?.port ?? 0, limit: SLICE_ROWS })
  for await (const rows of readSlices<ListedPort>(read))
    yield rows.map(({ port, slug, name, isOpen, isReserved, last_used_at }) => ({
      port,
      workspace: slug,
      name,
      state: isOpen ? ('open' as const) : isReserved ? ('reserved' as const) : ('unused' as const),
      expiresAt: isOpen || isReserved ? null : toIso(last_used_at + portRetentionMs(limits.tcpPorts)),
    }))
}

/**
 * Any workspace may get the port afterwards. Rejected while a tunnel is open: its edge would keep the port.
 */
export async function releasePort(services: Services, actor: Actor, port: number) {
  return services.store.transaction(async (db) => {
    const found = await lockPort(db, port)
    if (!found) throw new Fault('not_found', { message: `Port ${port} is not assigned.` })
    const { workspace_id: workspaceId, name } = found
    const { slug } = await getWorkspace(db, workspaceId)
    if (found.isOpen)
      throw new Fault('conflict', {
        message:
          `Port ${port} is in use by an open tunnel, "${name}" of the workspace "${slug}". Close it first: stop ` +
          'its client, close it in the dashboard, or revoke its key. If its edge is gone, retry in 10 minutes.',
      })
    await deletePort(db, port)
    await writeAudit(db, services, {
      workspaceId,
      actor,
      action: 'port.released',
      target: { id: String(port), name },
    })
    return { port, workspace: slug, name, released: true as const }
  })
}

/** Any node may check: an alert is created once. */
export async function alertScarcePorts(
  services: Services,
  { withMail, onScarce }: { withMail: boolean; onScarce: (use: PortUse) => void },
): Promise<void> {
  const { store, clock, limits } = services
  const { range } = limits.tcpPorts
  const use = await readPortUse(services)
  if (!use || !range || use.assigned < use.total * SCARCE) return
  const { first, last } = range
  const id = {
    kind: 'tcp-ports',
    subject_id: `${first}-${last}`,
    dedup_key: toIso(clock()).slice(0, 'yyyy-mm'.length),
  }
  if (await findOperatorAlert(store.db, id)) return
  const alert = { ...id, created_at: clock(), attempts: 0, due_at: withMail ? 0 : null }
  const detail = JSON.stringify(alertDetail(use))
  if (await store.transaction((db) => insertOperatorAlert(db, { ...alert, detail }))) onScarce(use)
}

const alertDetail = ({ assigned, total }: PortUse): OperatorAlertDetail => ({
  subject: `${assigned} of ${total} ports for TCP tunnels of Adit are assigned`,
  text:
    `${assigned} of ${total} ports for TCP tunnels are assigned. When none is left, new TCP tunnels are ` +
    'rejected; names that have a port keep it.\n\nExtend ADIT_TCP_PORTS on every node, or release ports that ' +
    'nobody needs:\nadit admin port list\nadit admin port release <port>\n',
})
