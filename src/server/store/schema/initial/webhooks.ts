import type { Migration } from '../migration.ts'

/**
 * Webhook endpoints with the state of their queues, and the deliveries to them (see store/webhooks/queue.ts).
 * Deliveries have no foreign key: an insert must not lock the endpoint, and those of a deleted one are
 * deleted by age.
 */
export const webhooks: Migration = ({ int64, strict, clustered }) => [
  `create table webhook_endpoints (
     id text primary key,
     workspace_id text not null references workspaces (id),
     url text not null,
     description text not null,
     events text,
     secret text not null,
     previous_secret text,
     previous_secret_until ${int64},
     created_at ${int64} not null,
     created_by text,
     disabled_at ${int64},
     disabled_reason text,
     last_position ${int64} not null,
     next_position ${int64} not null,
     enabled_position ${int64} not null default 0,
     due_at ${int64},
     claim text,
     failing_since ${int64}
   )${strict}`,
  'create index webhook_endpoints_by_workspace on webhook_endpoints (workspace_id)',
  'create index webhook_endpoints_due on webhook_endpoints (due_at) where due_at is not null',
  `create index webhook_endpoints_by_overlap on webhook_endpoints (previous_secret_until)
     where previous_secret_until is not null`,

  `create table webhook_deliveries (
     endpoint_id text not null,
     id text not null,
     position ${int64},
     sequence ${int64} not null,
     event_id text not null,
     type text not null,
     body text not null,
     created_at ${int64} not null,
     attempts integer not null,
     attempted_at ${int64},
     delivered_at ${int64},
     url text,
     status integer,
     duration_ms integer,
     error text,
     response text,
     primary key (endpoint_id, id)
   )${clustered}`,
  `create unique index webhook_deliveries_by_position on webhook_deliveries (endpoint_id, position)
     where position is not null`,
  `create index webhook_deliveries_unassigned on webhook_deliveries (endpoint_id, sequence)
     where position is null`,
  'create index webhook_deliveries_by_age on webhook_deliveries (created_at)',
]
