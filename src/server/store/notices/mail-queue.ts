// SQL of queued emails: to members about notices, and to the operator about alerts. An email is claimed
// before it is sent, so that no two nodes send it.
import { sql } from 'kysely'
import { nowIn } from '../engine/clock.ts'
import type { Db, Tx } from '../engine/store.ts'
import type { OperatorAlertRow } from './alerts.ts'
import type { NoticeMailRow } from './key-notices.ts'

export interface Queues {
  notice_mails: NoticeMailRow
  operator_alerts: OperatorAlertRow
}

export type MailQueue = keyof Queues

const primaryKeys: { [Q in MailQueue]: readonly (keyof Queues[Q])[] } = {
  notice_mails: ['digest_id', 'user_id'],
  operator_alerts: ['kind', 'subject_id', 'dedup_key'],
}

/** Longest due first. */
export async function listDueMails<Q extends MailQueue>(
  db: Db,
  queue: Q,
  limit: number,
): Promise<Queues[Q][]> {
  const { rows } = await sql<Queues[Q]>`select * from ${sql.table(queue)}
    where due_at is not null and due_at <= ${nowIn(db)} order by due_at limit ${limit}`.execute(db)
  return rows
}

/** Postpones the email, so that no other node sends it. Returns false if another node was first. */
export async function claimMail<Q extends MailQueue>(
  tx: Tx,
  queue: Q,
  mail: Queues[Q],
  retryInMs: number,
): Promise<boolean> {
  const { numAffectedRows } = await sql`update ${sql.table(queue)}
    set attempts = ${mail.attempts + 1}, due_at = ${nowIn(tx)} + ${retryInMs}
    where ${identifies(queue, mail)} and attempts = ${mail.attempts} and due_at is not null`.execute(tx)
  return numAffectedRows === 1n
}

/** Takes an email out of the queue after it was sent, or because it will not be. */
export async function endMail<Q extends MailQueue>(tx: Tx, queue: Q, mail: Queues[Q]): Promise<void> {
  await sql`update ${sql.table(queue)} set due_at = null where ${identifies(queue, mail)}`.execute(tx)
}

const identifies = <Q extends MailQueue>(queue: Q, mail: Queues[Q]) =>
  sql.join(
    primaryKeys[queue].map((column) => sql`${sql.ref(String(column))} = ${mail[column]}`),
    sql` and `,
  )
