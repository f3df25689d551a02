// Alerts to the owners and admins of a workspace: a notice in the dashboard, emails, and an event for
// webhooks, once each across nodes and restarts. The notice is inserted in the transaction of what it is
// about.
import { insertMails, insertNotices, listNoticed } from '../store/notices.ts'
import type { Tx } from '../store/store.ts'
import type { Services } from './context.ts'
import { recordEvent, type WorkspaceEvent } from './events.ts'
import { recipientsOf } from './notice-recipients.ts'

export type AlertKind = 'quota' | 'edge-silent' | 'key-rejected' | 'webhook-disabled'

export interface Alert {
  kind: AlertKind
  workspaceId: string
  /** With the threshold, it identifies the alert. */
  subjectId: string
  threshold: string
  /** For the email. They must not contain text of users that a mail client turns into a link. */
  title: string
  text: string
  event?: WorkspaceEvent
}

/** What is stored of it. */
export type AlertDetail = Pick<Alert, 'title' | 'text'>

/** Returns false if there is such an alert already. */
export async function createAlert(db: Tx, services: Services, alert: Alert): Promise<boolean> {
  const { kind, workspaceId, subjectId, threshold, title, text, event } = alert
  const noticed = await listNoticed(db, { kind, threshold, subjectIds: [subjectId] })
  if (noticed.size > 0) return false
  const recipients = services.hasMail ? await recipientsOf(db, services, workspaceId) : []
  const digest_id = recipients.length > 0 ? services.ids('dig') : null
  const common = { workspace_id: workspaceId, created_at: services.clock() }
  const detail = JSON.stringify({ title, text } satisfies AlertDetail)
  const row = { ...common, kind, subject_id: subjectId, threshold, digest_id, detail }
  if ((await insertNotices(db, [row])).size === 0) return false
  if (digest_id !== null)
    await insertMails(
      db,
      recipients.map((user_id) => ({ ...common, digest_id, user_id, attempts: 0, due_at: 0 })),
    )
  if (event) await recordEvent(db, services, event)
  return true
}
