// The tables as types. Every time is a whole number of milliseconds since 1970 in UTC, on both engines: no time
// zone, no driver's idea of a date. A flag is a time or null, so that it also says since when.
import type { ColumnType, Generated } from 'kysely'

/** A 64-bit counter: written as a bigint, read as text through `exact`, so that no driver rounds it past 2^53. */
type Counter = ColumnType<never, bigint, bigint>
type RolledUp = ColumnType<never, undefined, bigint>

export interface Tables {
  schema_version: { id: number; version: number }
  workspaces: {
    id: string
    slug: string
    name: string
    created_at: number
    provisioned_at: number | null
  }
  api_keys: {
    id: string
    workspace_id: string
    label: string
    hash: string
    created_at: number
    last_used_at: number | null
    revoked_at: number | null
  }
  edges: {
    id: string
    name: string
    hash: string
    created_at: number
    revoked_at: number | null
  }
  audit_log: {
    id: string
    /** Null for what belongs to the whole deployment, such as edges. */
    workspace_id: string | null
    at: number
    actor_kind: string
    actor_id: string
    action: string
    subject_id: string
  }
  idempotent_answers: {
    workspace_id: string
    id: string
    sealed: string
    created_at: number
  }
  key_feed_head: { id: number; number: number }
  key_feed: {
    number: number
    kind: 'key' | 'edge'
    subject_id: string
    hash: string
    at: number
  }
  usage_counters: {
    workspace_id: string
    day: number
    edge_id: string
    epoch: string
    requests: Counter
    bytes_in: Counter
    bytes_out: Counter
    events: Counter
    last_seen: number | null
  }
  usage_minutes: {
    workspace_id: string
    minute: number
    edge_id: string
    open: number
  }
  usage_days: {
    workspace_id: string
    day: number
    requests: RolledUp
    bytes_in: RolledUp
    bytes_out: RolledUp
    events: RolledUp
    peak_tunnels: Generated<number>
    last_seen: number | null
  }
}
