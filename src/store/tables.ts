// The tables as types. Every time is a whole number of milliseconds since 1970 in UTC, on both engines: no time
// zone, no driver's idea of a date. A flag is a time or null, so that it also says since when.
import type { ColumnType, Generated } from 'kysely'

/** A 64-bit counter: written as a bigint, read as text through `exact`, so that no driver rounds it past 2^53. */
type Counter = ColumnType<never, bigint, bigint>
type RolledUp = ColumnType<never, undefined, bigint>

export interface Tables {
  schema_version: {
    id: number
    version: number
    /** The lowest schema that a program must know to run on this one. */
    oldest_program: Generated<number>
  }
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
    /** Who made it, in words; null for keys from before that was kept. */
    created_by: string | null
  }
  users: {
    id: string
    name: string
    email: string
    /** 0 or 1, because better-auth asks for a flag; so are the other two like it. */
    email_verified: number
    image: string | null
    two_factor_enabled: number | null
    created_at: number
    updated_at: number
    disabled_at: number | null
  }
  /** How somebody can prove to be a user: by password (`credential`) or at another identity provider. */
  identities: {
    id: string
    user_id: string
    provider_id: string
    account_id: string
    password: string | null
    access_token: string | null
    refresh_token: string | null
    id_token: string | null
    access_token_expires_at: number | null
    refresh_token_expires_at: number | null
    scope: string | null
    created_at: number
    updated_at: number
  }
  sessions: {
    id: string
    user_id: string
    /** SHA-256 of what the cookie holds. */
    token: string
    ip_address: string | null
    user_agent: string | null
    created_at: number
    updated_at: number
    expires_at: number
  }
  verifications: {
    id: string
    identifier: string
    value: string
    created_at: number
    updated_at: number
    expires_at: number
  }
  two_factors: {
    id: string
    user_id: string
    secret: string
    backup_codes: string
    verified: number | null
    failed_verification_count: number | null
    locked_until: number | null
  }
  used_codes: { user_id: string; hash: string; at: number }
  members: {
    workspace_id: string
    user_id: string
    role: 'member' | 'admin' | 'owner'
    created_at: number
  }
  /** Links that let somebody in: to join a workspace, or to set a password anew. */
  links: {
    id: string
    hash: string
    purpose: 'join' | 'reset'
    /** Null where whoever opens it says who they are. */
    email: string | null
    /** 1 where only the owner of the address can have it, or the operator vouches for them. */
    proves_email: number
    workspace_id: string | null
    role: 'member' | 'admin' | 'owner' | null
    /** In words, and who of the people it was, if one. */
    created_by: string
    creator_id: string | null
    created_at: number
    expires_at: number
    /** Used or revoked. */
    ended_at: number | null
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
    /** The names of then, where they are not kept elsewhere. */
    actor_name: string | null
    subject_name: string | null
    /** The IP address that it was done from, where it is known. */
    address: string | null
    /** How somebody signed in, or why it failed. */
    detail: string | null
    /** How often within a minute, where repetitions share a row; null means once. */
    count: number | null
  }
  idempotent_answers: {
    workspace_id: string
    id: string
    sealed: string
    created_at: number
  }
  key_feed_head: { id: number; number: number; mark: string }
  key_feed: {
    number: number
    kind: 'key' | 'edge' | 'workspace'
    subject_id: string
    hash: string
    at: number
    mark: string
    /** The mark of the change before it. */
    before: string
  }
  nodes: {
    id: string
    host: string
    pid: number
    version: string
    lease_ms: number
    seen: number
    mark: string
    started_at: number
    heard_at: number
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
