import type { Migration } from '../migration.ts'

export const workspaces: Migration = ({ int64, strict }) => [
  `create table edge_groups (
     name text primary key,
     location_sequence ${int64} not null default 0,
     location_checksum text not null default ''
   )${strict}`,
  `insert into edge_groups (name) values ('default')`,

  // A null in the policy restricts nothing; a null quota is the default of the server.
  `create table workspaces (
     id text primary key,
     slug text not null unique,
     name text not null,
     created_at ${int64} not null,
     creator_id text,
     provisioned_at ${int64},
     archived_at ${int64},
     edge_group text not null default 'default' references edge_groups (name),
     key_days_max integer,
     keys_read_only_at ${int64},
     key_creator_role text,
     two_factor_required_at ${int64},
     quota_bytes ${int64},
     quota_requests ${int64},
     quota_tunnels ${int64},
     quota_keys ${int64},
     quota_revision integer not null default 0,
     usage_level text,
     usage_level_until ${int64}
   )${strict}`,
  'create index workspaces_of_creator on workspaces (creator_id) where creator_id is not null',
  'create index workspaces_by_level on workspaces (usage_level_until) where usage_level is not null',
]
