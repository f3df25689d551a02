import type { Migration } from './migration.ts'

/**
 * On SQLite the rows of usage no longer lie in the order of their workspaces but in that of their arrival, as they do on
 * PostgreSQL. A report speaks of one day of many workspaces: where each of them has a long history, every row would have to be
 * written to a page of its own, and lying together they fill a few. Nothing is renamed or retyped, so older programs go on.
 */
export const usageByArrival: Migration = ({ clustered }) => {
  if (clustered === '') return []
  return [
    ...again('usage_counters', 'workspace_id, day, edge_id, epoch', [
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
    ...again('usage_minutes', 'workspace_id, minute, edge_id', [
      'workspace_id text not null',
      'minute integer not null',
      'edge_id text not null',
      'open integer not null',
    ]),
    ...again('usage_days', 'workspace_id, day', [
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

const again = (table: string, key: string, columns: string[]): string[] => [
  `alter table ${table} rename to ${table}_by_workspace`,
  `create table ${table} (${columns.join(', ')}, primary key (${key})) strict`,
  `insert into ${table} select * from ${table}_by_workspace order by ${key.includes('minute') ? 'minute' : 'day'}`,
  `drop table ${table}_by_workspace`,
]
