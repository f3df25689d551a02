// Webhooks across kill -9 of nodes; for longer in npm run test:faults.
import { test } from 'node:test'
import { engines } from '../support/databases/create.ts'
import { assertDeliveries } from './scenario/webhooks.ts'

for (const engine of engines)
  test(`${engine}: webhooks arrive in order, once by their id, across kill -9 of nodes`, (t) =>
    assertDeliveries(t, { engine, kills: 1, keysPerKill: 15, isLong: false }).then(() => {}))
