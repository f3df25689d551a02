import type { Migration } from '../migration.ts'

export const accounts: Migration = ({ int64, strict }) => [
  `create table users (
     id text primary key,
     name text not null,
     email text not null unique,
     email_verified ${int64} not null,
     two_factor_enabled ${int64} not null default 0,
     created_at ${int64} not null,
     updated_at ${int64} not null,
     disabled_at ${int64}
   )${strict}`,

  `create table identities (
     id text primary key,
     user_id text not null references users (id),
     provider_id text not null,
     account_id text not null,
     password text,
     created_at ${int64} not null,
     updated_at ${int64} not null,
     unique (provider_id, account_id)
   )${strict}`,
  'create index identities_by_user on identities (user_id)',

  `create table sessions (
     id text primary key,
     user_id text not null references users (id),
     token text not null unique,
     ip_address text,
     user_agent text,
     created_at ${int64} not null,
     expires_at ${int64} not null,
     id_token text
   )${strict}`,
  'create index sessions_by_user on sessions (user_id)',
  'create index sessions_by_expiry on sessions (expires_at)',

  `create table verifications (
     id text primary key,
     value text not null,
     failed_codes ${int64} not null default 0,
     expires_at ${int64} not null
   )${strict}`,
  'create index verifications_by_expiry on verifications (expires_at)',
  // Only the start of the value: it may be too long for an index.
  'create index verifications_by_value on verifications (substr(value, 1, 64))',

  `create table two_factors (
     user_id text primary key references users (id),
     secret text not null,
     recovery_codes text not null,
     failed_codes ${int64} not null,
     locked_until ${int64}
   )${strict}`,

  // A TOTP code is valid for over a minute; it must not be used twice.
  `create table used_codes (
     user_id text not null references users (id),
     hash text not null,
     at ${int64} not null,
     primary key (user_id, hash)
   )${strict}`,
  'create index used_codes_by_age on used_codes (at)',

  `create table members (
     workspace_id text not null references workspaces (id),
     user_id text not null references users (id),
     role text not null,
     created_at ${int64} not null,
     primary key (workspace_id, user_id)
   )${strict}`,
  'create index members_by_user on members (user_id)',

  `create table links (
     id text primary key,
     hash text not null unique,
     purpose text not null,
     email text,
     proves_email ${int64} not null,
     workspace_id text references workspaces (id),
     role text,
     created_by text not null,
     creator_id text,
     created_at ${int64} not null,
     expires_at ${int64} not null,
     ended_at ${int64}
   )${strict}`,
  'create index links_by_workspace on links (workspace_id, id)',
  'create index links_open on links (workspace_id, expires_at) where ended_at is null',
  'create index links_by_expiry on links (expires_at)',
  'create index links_by_email on links (email, created_at)',
  'create index links_by_creator on links (creator_id, created_at)',

  // No foreign keys: rows are deleted within hours, and what they refer to is checked when it is used.
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
     request_id text,
     key_expires_at ${int64},
     consumed_at ${int64},
     encrypted_response text,
     failure text
   )${strict}`,
  'create index device_authorizations_by_expiry on device_authorizations (expires_at)',
]
