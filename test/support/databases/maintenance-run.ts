// A run of the maintenance job without its lease and pauses.
import type { Services } from '../../../src/server/domain/context.ts'
import type { Run } from '../../../src/server/domain/deletion-batches.ts'

export const createRun = (services: Services): Run => ({
  services,
  state: { now: Date.now(), usageFloor: 0, usageFloorAt: 0, usageCursor: null },
  usageCursor: null,
  proceed: async () => true,
  sleep: async () => {},
  onDeleted() {},
  onWait() {},
})
