import type { Migration } from './migration.ts'

/**
 * On SQLite, stores usage rows in insertion order instead of primary key order, as PostgreSQL does. A report
 * covers one day of many workspaces: in primary key order each row would be on a different page, in insertion
 * order they share a few. Columns are unchanged, so older programs can run on it.
 */
export const usageByArrival: Migration = ({ clustered }) => {
  if (clustered === '') return []
  return [
    ...rebuild('usage_counters', 'workspace_id, day, edge_id, epoch', [
      'workspace_id text not null',
      'day integer not null',
      'edge_id text not null',
      'epoch text not null',
      'requests integer not null',
      'bytes_in integer not null',
      'bytes_out integer not null',
      'events integer not null',
      'last_seen integer',
    ]),
    ...rebuild('usage_minutes', 'workspace_id, minute, edge_id', [
      'workspace_id text not null',
      'minute integer not null',
      'edge_id text not null',
      'open integer not null',
    ]),
    ...rebuild('usage_days', 'workspace_id, day', [
      'workspace_id text not null',
      'day integer not null',
      'requests integer not null default 0',
      'bytes_in integer not null default 0',
      'bytes_out integer not null default 0',
      'events integer not null default 0',
      'peak_tunnels integer not null default 0',
      'last_seen integer',
    ]),
  ]
}

const rebuild = (table: string, key: string, columns: string[]): string[] => [
  `alter table ${table} rename to ${table}_by_workspace`,
  `create table ${table} (${columns.join(', ')}, primary key (${key})) strict`,
  `insert into ${table} select * from ${table}_by_workspace
   order by ${key.includes('minute') ? 'minute' : 'day'}`,
  `drop table ${table}_by_workspace`,
]
