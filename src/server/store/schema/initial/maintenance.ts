import type { Migration } from '../migration.ts'

/** One row: the state of the maintenance job (store/maintenance/state.ts). */
export const maintenance: Migration = ({ int64, strict }) => [
  `create table maintenance (
     id integer primary key,
     owner text not null,
     due_at ${int64} not null,
     usage_floor ${int64} not null,
     usage_floor_at ${int64} not null,
     usage_cursor text,
     backed_up_at ${int64}
   )${strict}`,
  `insert into maintenance (id, owner, due_at, usage_floor, usage_floor_at) values (1, '', 0, 0, 0)`,
]
