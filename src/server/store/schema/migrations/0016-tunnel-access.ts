import type { Migration } from './migration.ts'

/** Access rules that the client of an open tunnel asked for, without the password. Null if there are none. */
export const tunnelAccess: Migration = () => ['alter table open_tunnels add column client_access text']
