import type { Migration } from './migration.ts'

/** Ports of TCP tunnels, each of one name (see store/tcp-ports.ts). */
export const tcpPorts: Migration = ({ int64, strict }) => [
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
