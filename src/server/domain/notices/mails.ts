// Sends the emails about notices and alerts. An email is claimed in the database before it is sent, and
// marked after that. So no two nodes send it, and one that was claimed by a node that crashed is sent again
// after a while, with the same Message-ID: it may arrive twice, but is not lost.
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
/** Then the mail server is probably down: the rest is left to the next run. */
const FAILURES_MAX = 3
const ATTEMPTS_MAX = 7
const RETRY_MIN_MS = 15 * MINUTE_MS
const KEYS_LISTED_MAX = 50

export interface NoticeEmail {
  /** The same if it is sent again. */
  id: string
  to: string
  subject: string
  text: string
}

export interface NoticeMailOptions {
  send: (email: NoticeEmail) => Promise<void>
  /** The URL that links begin with. */
  address: () => string
  /** The address of the operator; undefined if it gets no email. */
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
    ...mails.map((mail) => noticeMail(services, mail, options.address())),
  ]
  let failures = 0
  for (const mail of due) {
    if (failures === FAILURES_MAX) return true
    // Sending may take longer than the pause between two renewals of the lease.
    if (!(await run.proceed())) return false
    if (!(await trySend(services, mail, options))) failures += 1
  }
  return true
}

interface DueMail {
  attempts: number
  /** Postpones it; false if another node has. */
  claim: (db: Tx, retryInMs: number) => Promise<boolean>
  /** It was sent, or will not be. */
  end: (db: Tx) => Promise<void>
  /** Undefined if there is nothing to send any more. */
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

/** The mail server rejects this email, e.g. its recipient. Others must not wait for it. */
const isRejection = ({ code }: NodeJS.ErrnoException): boolean => code === 'EENVELOPE' || code === 'EMESSAGE'

const dueMail = <Q extends MailQueue>(queue: Q, mail: Queues[Q], compose: DueMail['compose']): DueMail => ({
  attempts: mail.attempts,
  claim: (db, retryInMs) => claimMail(db, queue, mail, retryInMs),
  end: (db) => endMail(db, queue, mail),
  compose,
})

const noticeMail = (services: Services, mail: NoticeMailRow, address: string): DueMail =>
  dueMail('notice_mails', mail, () => composeNotice(services, mail, address))

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
  address: string,
): NoticeEmail {
  return {
    id: `${digest_id}.${user_id}`,
    to: email,
    subject: `A workspace on Adit ${title}`,
    text: `Hello,

A workspace on Adit ${title}.

Workspace: ${withoutLinks(name)}

${text}

${[address, 'w', slug, page].filter(Boolean).join('/')}

You get this email because ${recipientId ? 'you have requested the key' : 'you are an owner or admin of the workspace'}.
`,
  }
}

const MANAGERS = ['owner', 'admin'] as const

/** Undefined if there is nothing left to say, or nobody to say it to. */
async function composeNotice(
  { store: { db } }: Services,
  mail: NoticeMailRow,
  address: string,
): Promise<NoticeEmail | undefined> {
  const stored = await findDetail(db, mail.digest_id)
  const detail = stored === undefined ? undefined : (JSON.parse(stored) as AlertDetail)
  const recipient = await findRecipient(db, mail, detail?.recipientId ? [...MANAGERS, 'member'] : MANAGERS)
  if (!recipient) return undefined
  if (detail) return alertEmail(mail, recipient, detail, address)
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

${address}/w/${recipient.slug}/keys

You get this email because you are an owner or admin of the workspace.
`,
  }
}
