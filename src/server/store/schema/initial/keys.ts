import type { Migration } from '../migration.ts'

export const keys: Migration = ({ int64, strict }) => [
  // A personal key has the id of its user. Rotation: keys of one lineage have the id of its first key, and
  // are numbered by generation. Agents: the key of an agent that has signed in is valid at /mcp only.
  `create table api_keys (
     id text primary key,
     workspace_id text not null references workspaces (id),
     user_id text references users (id),
     label text not null,
     hash text not null unique,
     last_four text not null,
     created_at ${int64} not null,
     created_by_kind text not null,
     created_by text not null,
     last_used_at ${int64},
     expires_at ${int64},
     revoked_at ${int64},
     lineage_id text,
     generation integer not null default 0,
     lifetime ${int64},
     agent_host text,
     agent_access text
   )${strict}`,
  'create index api_keys_by_workspace on api_keys (workspace_id, id)',
  // Active keys are counted and listed without scanning revoked ones.
  'create index api_keys_active on api_keys (workspace_id, id) where revoked_at is null',
  'create index api_keys_expiring on api_keys (expires_at) where revoked_at is null and expires_at is not null',
  'create index api_keys_of_user on api_keys (user_id, workspace_id, id) where user_id is not null',
  `create index api_keys_active_of_user on api_keys (user_id, workspace_id)
     where user_id is not null and revoked_at is null`,
  `create index api_keys_lineages on api_keys (workspace_id, lineage_id, generation)
     where lineage_id is not null and revoked_at is null`,

  // Variant B: members request keys. `expires_at` is the end of the request, or of its approval.
  `create table key_requests (
     id text primary key,
     workspace_id text not null references workspaces (id),
     user_id text not null references users (id),
     label text not null,
     created_at ${int64} not null,
     expires_at ${int64} not null,
     state text not null,
     decided_by text references users (id),
     decided_at ${int64}
   )${strict}`,
  'create index key_requests_of_user on key_requests (user_id, workspace_id, created_at)',
  `create index key_requests_pending on key_requests (workspace_id, created_at) where state = 'pending'`,
  'create index key_requests_by_expiry on key_requests (expires_at)',

  `create table idempotent_responses (
     workspace_id text not null references workspaces (id),
     id text not null,
     encrypted_response text not null,
     created_at ${int64} not null,
     primary key (workspace_id, id)
   )${strict}`,
  'create index idempotent_responses_by_age on idempotent_responses (workspace_id, created_at)',
  'create index idempotent_responses_by_creation on idempotent_responses (created_at)',

  `create table key_rejections (
     key_id text not null primary key references api_keys (id),
     hour ${int64} not null,
     attempts ${int64} not null
   )${strict}`,
  'create index key_rejections_by_age on key_rejections (hour)',
]
