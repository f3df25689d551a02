import type { Migration } from '../migration.ts'

/**
 * Edges, and the tunnels that they carry. Every edge writes the tables without foreign keys every few
 * seconds. No index contains a column that such a write changes.
 */
export const tunnels: Migration = ({ int64, strict, clustered, halfFull }) => [
  `create table edges (
     id text primary key,
     name text not null,
     url text,
     hash text not null unique,
     edge_group text not null default 'default' references edge_groups (name),
     created_at ${int64} not null,
     revoked_at ${int64}
   )${strict}`,

  `create table edge_workspaces (
     edge_id text not null,
     workspace_id text not null,
     verified_at ${int64} not null,
     events_hour ${int64} not null default 0,
     events integer not null default 0,
     primary key (edge_id, workspace_id)
   )${strict}`,

  `create table edge_sessions (
     edge_id text primary key,
     session text not null,
     sequence ${int64} not null,
     lease_until ${int64} not null,
     last_sync_at ${int64},
     started_at ${int64},
     version text,
     peer_address text,
     tunnels integer not null,
     streams integer not null,
     acknowledged_sequence ${int64},
     acknowledged_checksum text,
     previous_lease_until ${int64} not null default 0
   )${strict}`,

  `create table open_tunnels (
     edge_id text not null,
     id text not null,
     sequence ${int64} not null,
     workspace_id text not null,
     name text not null,
     type text not null,
     pool integer not null,
     url text not null,
     key_id text not null,
     client_address text not null,
     client_version text,
     client_access text,
     opened_at ${int64} not null,
     resume_hash text,
     session_hash text,
     tunnel_id text not null,
     requests ${int64} not null,
     bytes_in ${int64} not null,
     bytes_out ${int64} not null,
     streams integer not null,
     close_requested_at ${int64},
     close_requested_by text,
     close_reason text,
     instruction_sequence ${int64},
     primary key (edge_id, id)
   )${clustered}${halfFull}`,
  'create index open_tunnels_by_name on open_tunnels (workspace_id, name)',
  'create index open_tunnels_by_edge on open_tunnels (edge_id, workspace_id)',
  `create index open_tunnels_with_instruction on open_tunnels (edge_id)
     where instruction_sequence is not null`,

  `create table location_log (
     edge_group text not null,
     sequence ${int64} not null,
     checksum text not null,
     previous_checksum text not null,
     opened text not null,
     closed text not null,
     at ${int64} not null,
     primary key (edge_group, sequence)
   )${strict}`,
  'create index location_log_by_time on location_log (at)',

  `create table recent_keys (
     edge_id text not null,
     key_id text not null,
     closed_at ${int64} not null,
     primary key (edge_id, key_id)
   )${strict}`,
  'create index recent_keys_by_key on recent_keys (key_id)',

  `create table tunnel_names (
     workspace_id text not null references workspaces (id),
     name text not null,
     created_at ${int64} not null,
     last_used_at ${int64},
     expires_at ${int64},
     access_rules text,
     counting_edge_id text,
     counting_from ${int64},
     primary key (workspace_id, name)
   )${strict}`,
  'create index tunnel_names_by_expiry on tunnel_names (expires_at)',

  `create table tcp_ports (
     port integer primary key,
     workspace_id text not null references workspaces (id),
     name text not null,
     assigned_at ${int64} not null,
     last_used_at ${int64} not null,
     unique (workspace_id, name)
   )${strict}`,
  'create index tcp_ports_by_use on tcp_ports (last_used_at)',
]
