import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { startLastUsedTracker } from '../../../src/server/verification/last-used.ts'
import { openTestServices } from '../../support/api/server.ts'
import { atEnd } from '../../support/cleanup.ts'
import { until } from '../../support/until.ts'

test('an outage of several flushes is reported when it begins and when it ends', async (t) => {
  const { services } = await openTestServices(t, 'sqlite')
  const { store, clock } = services
  const rename = (from: string, to: string) =>
    store.transaction((db) => sql.raw(`alter table ${from} rename to ${to}`).execute(db))
  let flushes = 0
  const counted: typeof store = {
    ...store,
    transaction: (work, ...rest) => {
      flushes += 1
      return store.transaction(work, ...rest)
    },
  }
  const reported: string[] = []
  const lastUsed = startLastUsedTracker(counted, clock, {
    onFailure: () => reported.push('failure'),
    onRecovery: () => reported.push('recovery'),
  })
  atEnd(t, () => lastUsed.stop())
  await rename('api_keys', 'gone')
  lastUsed.record('k1')
  await until('two flushes have failed', () => flushes >= 2 && reported.length > 0)
  await rename('gone', 'api_keys')
  await until('the next flush succeeds', () => reported.includes('recovery'))
  assert.deepEqual(reported, ['failure', 'recovery'])
})
