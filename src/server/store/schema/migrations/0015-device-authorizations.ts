import type { Migration } from './migration.ts'

/**
 * Sign-ins from a terminal (see domain/device-authorizations.ts). No foreign keys: rows are deleted within
 * hours, and what they refer to is checked when it is used.
 */
export const deviceAuthorizations: Migration = ({ int64, strict }) => [
  `create table device_authorizations (
     hash text primary key,
     user_code text not null unique,
     device_name text not null,
     address text not null,
     created_at ${int64} not null,
     expires_at ${int64} not null,
     state text not null,
     workspace_id text,
     user_id text,
     session_id text,
     key_expires_at ${int64},
     consumed_at ${int64},
     encrypted_response text,
     failure text
   )${strict}`,
  'create index device_authorizations_by_expiry on device_authorizations (expires_at)',
]
