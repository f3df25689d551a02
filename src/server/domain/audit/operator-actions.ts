// Audit entries of commands that concern the whole database. Long commands are recorded when they begin.
import type { Actor, Services } from '../context.ts'
import type { Changes } from './changes.ts'
import { writeAudit } from './entries.ts'

type DatabaseAction =
  | 'database.migrated'
  | 'database.backed-up'
  | 'database.cleaned-up'
  | 'database.distributed'

export const databaseEntry = (actor: Actor, action: DatabaseAction, changes: Changes = {}) => ({
  workspaceId: null,
  actor,
  action,
  target: { id: 'database', name: 'database' },
  changes,
})

export const recordDatabaseAction = (services: Services, actor: Actor, action: DatabaseAction) =>
  services.store.transaction((db) => writeAudit(db, services, databaseEntry(actor, action)))
