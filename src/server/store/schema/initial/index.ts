// The first version of the schema, by subject. Tables come after those that they reference.
import type { Migration } from '../migration.ts'
import { accounts } from './accounts.ts'
import { audit } from './audit.ts'
import { changes } from './changes.ts'
import { keys } from './keys.ts'
import { maintenance } from './maintenance.ts'
import { notices } from './notices.ts'
import { tunnels } from './tunnels.ts'
import { usage } from './usage.ts'
import { webhooks } from './webhooks.ts'
import { workspaces } from './workspaces.ts'

const subjects = [workspaces, accounts, keys, audit, changes, tunnels, usage, notices, webhooks, maintenance]

export const initial: Migration = (sql) => subjects.flatMap((subject) => subject(sql))
