import type { Migration } from './migration.ts'

/**
 * Whoever may answer from memory, and up to which change it has heard. `heard_at` is for people: nothing goes by it.
 *
 * Changes get a mark, and name that of the change before them: after a failover that lost the last ones, or a restore,
 * numbers are given a second time, and a number alone would not tell which of the two somebody has heard of.
 */
export const nodes: Migration = ({ int64, strict }) => [
  `create table nodes (
     id text primary key,
     host text not null,
     pid integer not null,
     version text not null,
     lease_ms integer not null,
     seen ${int64} not null,
     mark text not null,
     started_at ${int64} not null,
     heard_at ${int64} not null
   )${strict}`,
  `alter table key_feed_head add column mark text not null default ''`,
  `alter table key_feed add column mark text not null default ''`,
  `alter table key_feed add column before text not null default ''`,
]
