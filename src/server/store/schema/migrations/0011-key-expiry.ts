import type { Migration } from './migration.ts'

/** Keys with an expiry. Few keys are about to expire at any time, which the index finds. */
export const keyExpiry: Migration = ({ int64 }) => [
  `alter table api_keys add column expires_at ${int64}`,
  'create index api_keys_expiring on api_keys (expires_at) where revoked_at is null and expires_at is not null',
]
