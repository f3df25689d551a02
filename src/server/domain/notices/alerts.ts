// Alerts to the owners and admins of a workspace: a notice in the dashboard, emails, and an event for
// webhooks, once each across nodes and restarts. The notice is inserted in the transaction of its cause.

import type { Tx } from '../../store/engine/store.ts'
import { insertMails, insertNotices, listNoticed, type NoticeId } from '../../store/notices/key-notices.ts'
import type { Services } from '../context.ts'
import { recordEvent, type WorkspaceEvent } from '../events/record.ts'
import { listRecipients } from './recipients.ts'

type AlertKind =
  | 'quota'
  | 'edge-silent'
  | 'key-rejected'
  | 'webhook-disabled'
  | 'key-request'
  | 'key-request-decided'

export interface Alert {
  kind: AlertKind
  workspaceId: string
  /** Identifies the alert together with `dedupKey`. */
  subjectId: string
  dedupKey: string
  /** Title and text are for the email, and must not contain user input that a mail client makes a link. */
  title: string
  text: string
  /** The page of the workspace that the email links to; the overview without one. */
  page?: 'keys'
  /** A member who gets it instead of the owners and admins. */
  recipientId?: string
  event?: WorkspaceEvent
}

/** The part of an alert that is stored. */
export type AlertDetail = Pick<Alert, 'title' | 'text' | 'page' | 'recipientId'>

export const createAlert = (db: Tx, services: Services, alert: Alert): Promise<void> =>
  createAlerts(db, services, [alert])

/** Creates the alerts that do not exist yet. */
export async function createAlerts(db: Tx, services: Services, alerts: readonly Alert[]): Promise<void> {
  if (alerts.length === 0) return
  const ids = alerts.map(toNoticeId)
  const noticed = new Set((await listNoticed(db, ids)).map(noticeKey))
  for (const [index, alert] of alerts.entries())
    if (!noticed.has(noticeKey(ids[index] as NoticeId))) await insertAlert(db, services, alert)
}

const toNoticeId = ({ kind, subjectId, dedupKey }: Alert): NoticeId => ({
  kind,
  subject_id: subjectId,
  dedup_key: dedupKey,
})

const noticeKey = ({ kind, subject_id, dedup_key }: NoticeId) => [kind, subject_id, dedup_key].join(' ')

async function insertAlert(db: Tx, services: Services, alert: Alert): Promise<void> {
  const { workspaceId, title, text, page, recipientId, event } = alert
  const recipients = services.hasMail ? await listRecipients(db, services, alert) : []
  const digest_id = recipients.length > 0 ? services.ids('dig') : null
  const common = { workspace_id: workspaceId, created_at: services.clock() }
  const detail = JSON.stringify({ title, text, page, recipientId } as AlertDetail)
  const inserted = await insertNotices(db, [{ ...common, ...toNoticeId(alert), digest_id, detail }])
  // Another node has created it meanwhile.
  if (inserted.size === 0) return
  if (digest_id !== null) await insertMails(db, { ...common, digest_id }, recipients)
  if (event) await recordEvent(db, services, event)
}
