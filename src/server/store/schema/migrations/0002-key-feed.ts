import type { Migration } from './migration.ts'

/**
 * The change log, in commit order. Its sequence comes from one row that is locked until the commit: with a
 * database sequence, numbers could become visible out of order, and readers would miss entries.
 */
export const keyFeed: Migration = ({ int64, strict }) => [
  `create table key_feed_head (
     id integer primary key,
     number ${int64} not null
   )${strict}`,
  'insert into key_feed_head (id, number) values (1, 0)',

  `create table key_feed (
     number ${int64} primary key,
     kind text not null,
     subject_id text not null,
     hash text not null,
     at ${int64} not null
   )${strict}`,
]
