import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '../../../src/server/domain/fault.ts'
import { createDatabaseWait } from '../../../src/server/http/api/database-wait.ts'

test('at most 1,000 requests wait for the database, and only for that', async () => {
  let isUp = false
  const wait = createDatabaseWait(() => isUp, new AbortController().signal)
  const attempt = () => {
    if (!isUp) throw new Fault('unavailable')
    return 'done'
  }
  const waiting = Array.from({ length: 1_000 }, () => wait(attempt, () => true))
  await assert.rejects(
    wait(attempt, () => true),
    { code: 'unavailable' },
  )
  isUp = true
  assert.deepEqual(new Set(await Promise.all(waiting)), new Set(['done']))
  isUp = false
  const mayNot = wait(attempt, () => false)
  await assert.rejects(mayNot, { code: 'unavailable' })
  const forbidden = wait(
    () => {
      throw new Fault('forbidden')
    },
    () => true,
  )
  await assert.rejects(forbidden, { code: 'forbidden' })
})
