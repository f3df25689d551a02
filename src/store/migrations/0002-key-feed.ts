import type { Migration } from './migration.ts'

/**
 * Revocations in the order of their commits. The number is taken from one row, which is locked until the commit: a
 * sequence would hand numbers out in one order and let them commit in another, and a reader would miss some.
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
