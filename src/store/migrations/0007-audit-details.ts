import type { Migration } from './migration.ts'

/** What the audit log says of sign-ins: from where, how or why not, and how often. */
export const auditDetails: Migration = ({ int64 }) => [
  'alter table audit_log add column address text',
  'alter table audit_log add column detail text',
  `alter table audit_log add column count ${int64}`,
]
