// Sizes of the queues of webhooks and emails, for all nodes.
import { sql } from 'kysely'
import type { Db } from '../engine/store.ts'

export interface QueueSizes {
  mails: number
  webhookEvents: number
  /** Endpoints whose last delivery failed and is retried. */
  failingEndpoints: number
}

export async function readQueueSizes(db: Db): Promise<QueueSizes> {
  const countDue = async (table: 'notice_mails' | 'operator_alerts') => {
    const { count } = await db
      .selectFrom(table)
      .select((mail) => mail.fn.countAll().as('count'))
      .where('due_at', 'is not', null)
      .executeTakeFirstOrThrow()
    return Number(count)
  }
  const [notices, alerts, endpoints, recorded] = await Promise.all([
    countDue('notice_mails'),
    countDue('operator_alerts'),
    db
      .selectFrom('webhook_endpoints')
      .select(sql<number>`cast(coalesce(sum(last_position - next_position + 1), 0) as bigint)`.as('events'))
      .select((endpoint) => endpoint.fn.count('failing_since').as('failing'))
      .where('due_at', 'is not', null)
      .executeTakeFirstOrThrow(),
    // They have no position in a queue yet.
    db
      .selectFrom('webhook_deliveries')
      .select((delivery) => delivery.fn.countAll().as('count'))
      .where('position', 'is', null)
      .executeTakeFirstOrThrow(),
  ])
  return {
    mails: notices + alerts,
    webhookEvents: Number(endpoints.events) + Number(recorded.count),
    failingEndpoints: Number(endpoints.failing),
  }
}
