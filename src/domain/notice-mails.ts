// Sends the emails about notices, a few in each run of the maintenance job.
import { withoutLinks } from '../contract/text.ts'
import {
  claimMail,
  endMail,
  findRecipient,
  listDueMails,
  listKeysOfDigest,
  type NoticeMailRow,
} from '../store/notices.ts'
import { MINUTE_MS } from '../time.ts'
import type { Services } from './context.ts'
import type { Run } from './deletion-batches.ts'
import { isoOf } from './timestamps.ts'

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
  onFailure: (error: unknown) => void
}

/** Returns false if the run was stopped before the end. */
export async function sendNoticeMails(run: Run, options: NoticeMailOptions): Promise<boolean> {
  const { services } = run
  let failures = 0
  for (const mail of await listDueMails(services.store.db, MAILS_PER_RUN)) {
    if (failures === FAILURES_MAX) return true
    // Sending may take longer than the pause between two renewals of the lease.
    if (!(await run.proceed())) return false
    if (!(await trySend(services, mail, options))) failures += 1
  }
  return true
}

/** Returns false if the mail server did not accept it. */
async function trySend(
  services: Services,
  mail: NoticeMailRow,
  options: NoticeMailOptions,
): Promise<boolean> {
  const { store } = services
  const retryInMs = RETRY_MIN_MS * 2 ** mail.attempts
  if (!(await store.transaction((db) => claimMail(db, mail, retryInMs)))) return true
  const email = await emailOf(services, mail, options.address())
  let isSent = true
  if (email)
    await options.send(email).catch((error) => {
      isSent = false
      options.onFailure(error)
    })
  if (isSent || mail.attempts + 1 >= ATTEMPTS_MAX) await store.transaction((db) => endMail(db, mail))
  return isSent
}

/** Undefined if there is nothing left to say, or nobody to say it to. */
async function emailOf(
  { store: { db } }: Services,
  mail: NoticeMailRow,
  address: string,
): Promise<NoticeEmail | undefined> {
  const recipient = await findRecipient(db, mail)
  const keys = await listKeysOfDigest(db, mail.digest_id, KEYS_LISTED_MAX + 1)
  if (!recipient || keys.length === 0) return undefined
  const lines = keys.slice(0, KEYS_LISTED_MAX).map(({ id, label, lastFour, expiresAt }) => {
    const name = [withoutLinks(label), lastFour ? `adit_…${lastFour}` : id].filter(Boolean).join(', ')
    return `- ${name}: ${isoOf(expiresAt).slice(0, 16).replace('T', ' ')} UTC`
  })
  if (keys.length > KEYS_LISTED_MAX) lines.push('- and more, which the dashboard lists')
  return {
    id: `${mail.digest_id}.${mail.user_id}`,
    to: recipient.email,
    subject: 'API keys of a workspace on Adit expire soon',
    text: `Hello,

API keys of a workspace on Adit expire soon. From then on requests with them are rejected, and their tunnels
are closed.

Workspace: ${withoutLinks(recipient.name)}

${lines.join('\n')}

If they are still in use, rotate them in the dashboard:

${address}/w/${recipient.slug}/keys

You get this email because you are an owner or admin of the workspace.
`,
  }
}
