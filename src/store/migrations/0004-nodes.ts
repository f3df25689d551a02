import type { Migration } from './migration.ts'

/** Whoever may answer from memory, and up to which change it has heard. `heard_at` is for people: nothing goes by it. */
export const nodes: Migration = ({ int64, strict }) => [
  `create table nodes (
     id text primary key,
     host text not null,
     pid integer not null,
     version text not null,
     lease_ms integer not null,
     seen ${int64} not null,
     started_at ${int64} not null,
     heard_at ${int64} not null
   )${strict}`,
]
