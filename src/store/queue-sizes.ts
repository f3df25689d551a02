// How much waits to be sent, of all nodes together.
import { sql } from 'kysely'
import type { Db } from './store.ts'

export interface QueueSizes {
  mails: number
  webhookEvents: number
  /** Endpoints whose last delivery failed, and is tried again. */
  failingEndpoints: number
}

export async function readQueueSizes(db: Db): Promise<QueueSizes> {
  const [mails, endpoints] = await Promise.all([
    db
      .selectFrom('notice_mails')
      .select((mail) => mail.fn.countAll().as('count'))
      .where('due_at', 'is not', null)
      .executeTakeFirstOrThrow(),
    db
      .selectFrom('webhook_endpoints')
      .select(sql<number>`cast(coalesce(sum(last_position - next_position + 1), 0) as bigint)`.as('events'))
      .select((endpoint) => endpoint.fn.count('failing_since').as('failing'))
      .where('due_at', 'is not', null)
      .executeTakeFirstOrThrow(),
  ])
  return {
    mails: Number(mails.count),
    webhookEvents: Number(endpoints.events),
    failingEndpoints: Number(endpoints.failing),
  }
}
