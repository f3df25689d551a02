// Sends the emails about notices and alerts. An email is claimed in the database before it is sent, so that
// no two nodes send it, and marked afterwards. If a node crashes in between, another one sends the email
// again with the same Message-ID: it may arrive twice, but is not lost.
import { withoutLinks } from '../../../contract/text.ts'
import { MINUTE_MS } from '../../../lib/time.ts'
import type { Tx } from '../../store/engine/store.ts'
import type { OperatorAlertRow } from '../../store/notices/alerts.ts'
import {
  findDetail,
  findRecipient,
  listDigestKeys,
  type NoticeMailRow,
} from '../../store/notices/key-notices.ts'
import {
  claimMail,
  endMail,
  listDueMails,
  type MailQueue,
  type Queues,
} from '../../store/notices/mail-queue.ts'
import type { Services } from '../context.ts'
import type { Run } from '../deletion-batches.ts'
import { toIso } from '../timestamps.ts'
import type { AlertDetail } from './alerts.ts'
import type { OperatorAlertDetail } from './edge-alerts.ts'

const MAILS_PER_RUN = 100
/** After this many failures the mail server is probably down, and the next run sends the rest. */
const FAILURES_MAX = 3
const ATTEMPTS_MAX = 7
const RETRY_MIN_MS = 15 * MINUTE_MS
const KEYS_LISTED_MAX = 50

export interface NoticeEmail {
  /** Stays the same if the email is sent again. */
  id: string
  to: string
  subject: string
  text: string
}

export interface NoticeMailOptions {
  send: (email: NoticeEmail) => Promise<void>
  /** The URL that links begin with. */
  publicUrl: () => string
  /** Email address of the operator; undefined if the operator gets no email. */
  operator?: string | undefined
  onFailure: (error: unknown) => void
}

/** Returns false if the run was stopped before the end. */
export async function sendNoticeMails(
  run: Pick<Run, 'services' | 'proceed'>,
  options: NoticeMailOptions,
): Promise<boolean> {
  const { services } = run
  const { operator } = options
  const { db } = services.store
  const alerts = operator === undefined ? [] : await listDueMails(db, 'operator_alerts', MAILS_PER_RUN)
  const mails = await listDueMails(db, 'notice_mails', MAILS_PER_RUN)
  const due = [
    ...alerts.map((alert) => operatorMail(alert, operator as string)),
    ...mails.map((mail) => noticeMail(services, mail, options.publicUrl())),
  ]
  let failures = 0
  for (const mail of due) {
    if (failures === FAILURES_MAX) return true
    // Sending may take longer than the interval of lease renewals.
    if (!(await run.proceed())) return false
    if (!(await trySend(services, mail, options))) failures += 1
  }
  return true
}

interface DueMail {
  attempts: number
  /** Postpones the email. Returns false if another node has claimed it. */
  claim: (db: Tx, retryInMs: number) => Promise<boolean>
  /** Takes the email out of the queue. */
  end: (db: Tx) => Promise<void>
  /** Undefined if there is nothing left to send. */
  compose: () => Promise<NoticeEmail | undefined>
}

/** Returns false if the mail server cannot be used. */
async function trySend(
  { store }: Services,
  { attempts, claim, end, compose }: DueMail,
  { send, onFailure }: NoticeMailOptions,
): Promise<boolean> {
  const retryInMs = RETRY_MIN_MS * 2 ** attempts
  if (!(await store.transaction((db) => claim(db, retryInMs)))) return true
  const email = await compose()
  let isSent = true
  let isServerUsable = true
  if (email)
    await send(email).catch((error) => {
      isSent = false
      isServerUsable = isRejection(error)
      onFailure(error)
    })
  if (isSent || attempts + 1 >= ATTEMPTS_MAX) await store.transaction(end)
  return isServerUsable
}

/** Whether the mail server rejects only this email, e.g. its recipient, so that others can be sent. */
const isRejection = ({ code }: NodeJS.ErrnoException): boolean => code === 'EENVELOPE' || code === 'EMESSAGE'

const dueMail = <Q extends MailQueue>(queue: Q, mail: Queues[Q], compose: DueMail['compose']): DueMail => ({
  attempts: mail.attempts,
  claim: (db, retryInMs) => claimMail(db, queue, mail, retryInMs),
  end: (db) => endMail(db, queue, mail),
  compose,
})

const noticeMail = (services: Services, mail: NoticeMailRow, publicUrl: string): DueMail =>
  dueMail('notice_mails', mail, () => composeNotice(services, mail, publicUrl))

const operatorMail = (alert: OperatorAlertRow, to: string): DueMail =>
  dueMail('operator_alerts', alert, async () => {
    const detail = JSON.parse(alert.detail) as OperatorAlertDetail
    const id = `${alert.kind}.${alert.subject_id}.${alert.dedup_key}`
    return { id, to, subject: detail.subject, text: `Hello,\n\n${detail.text}` }
  })

function alertEmail(
  { digest_id, user_id }: NoticeMailRow,
  { email, name, slug }: { email: string; name: string; slug: string },
  { title, text, page, recipientId }: AlertDetail,
  publicUrl: string,
): NoticeEmail {
  return {
    id: `${digest_id}.${user_id}`,
    to: email,
    subject: `A workspace on Adit ${title}`,
    text: `Hello,

A workspace on Adit ${title}.

Workspace: ${withoutLinks(name)}

${text}

${[publicUrl, 'w', slug, page].filter(Boolean).join('/')}

You get this email because ${recipientId ? 'you have requested the key' : 'you are an owner or admin of the workspace'}.
`,
  }
}

const MANAGERS = ['owner', 'admin'] as const

/** Undefined if the notices are obsolete or there is no recipient. */
async function composeNotice(
  { store: { db } }: Services,
  mail: NoticeMailRow,
  publicUrl: string,
): Promise<NoticeEmail | undefined> {
  const stored = await findDetail(db, mail.digest_id)
  const detail = stored === undefined ? undefined : (JSON.parse(stored) as AlertDetail)
  const recipient = await findRecipient(db, mail, detail?.recipientId ? [...MANAGERS, 'member'] : MANAGERS)
  if (!recipient) return undefined
  if (detail) return alertEmail(mail, recipient, detail, publicUrl)
  const keys = await listDigestKeys(db, mail.digest_id, KEYS_LISTED_MAX + 1)
  if (keys.length === 0) return undefined
  const lines = keys.slice(0, KEYS_LISTED_MAX).map(({ label, lastFour, expiresAt }) => {
    const name = [withoutLinks(label), `adit_…${lastFour}`].filter(Boolean).join(', ')
    return `- ${name}: ${toIso(expiresAt).slice(0, 16).replace('T', ' ')} UTC`
  })
  if (keys.length > KEYS_LISTED_MAX) lines.push('- and more (see the dashboard)')
  return {
    id: `${mail.digest_id}.${mail.user_id}`,
    to: recipient.email,
    subject: 'API keys of a workspace on Adit expire soon',
    text: `Hello,

API keys of a workspace on Adit expire soon. After that, they stop working and their tunnels close.

Workspace: ${withoutLinks(recipient.name)}

${lines.join('\n')}

If they are still in use, rotate them in the dashboard:

${publicUrl}/w/${recipient.slug}/keys

You get this email because you are an owner or admin of the workspace.
`,
  }
}
