import type { Migration } from './migration.ts'

/** Details of sign-ins: client address, method or reason of failure, and repetitions. */
export const auditDetails: Migration = ({ int64 }) => [
  'alter table audit_log add column address text',
  'alter table audit_log add column detail text',
  `alter table audit_log add column count ${int64}`,
]
