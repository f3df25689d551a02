// Password hashing is slow by design; one network must not delay others.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPasswordQueue } from '../../../src/server/http/limits/password-queue.ts'
import { addMember, openBrowser, PASSWORD } from '../../support/accounts/users.ts'
import { serve } from '../../support/api/server.ts'

test('16 concurrent sign-ins from one address do not delay the sign-in from another', async (t) => {
  const env = { ADIT_TRUSTED_PROXIES: '127.0.0.1' }
  const server = await serve(t, { engine: 'sqlite', env, hasCostlyPasswords: true })
  const { email } = await addMember(server, 'Ann', 'owner')
  const signIn = (address: string, given: { email: string; password: string }) =>
    openBrowser(server.url).call('POST', '/sign-in', given, { 'x-forwarded-for': address })
  let completed = 0
  const attempts = Array.from({ length: 16 }, async (_, index) => {
    const { status } = await signIn('192.0.2.1', { email: `u${index}@example.com`, password: 'wrong' })
    completed += 1
    return status
  })
  await Promise.race(attempts)
  assert.equal((await signIn('192.0.2.2', { email, password: PASSWORD })).status, 200)
  assert.ok(completed < 8, `${completed} of the 16 completed before it`)
  assert.deepEqual([...new Set(await Promise.all(attempts))], [401], 'all of them are within the limits')
})

test('per network 2 hashes run concurrently and 50 are queued; more are rejected', async () => {
  const enqueue = createPasswordQueue()
  const started: string[] = []
  const finish: (() => void)[] = []
  const begin = (address: string, name: string) =>
    enqueue(address, () => {
      started.push(name)
      return new Promise<void>((resolve) => finish.push(resolve))
    })
  const names = Array.from({ length: 52 }, (_, index) => `a${index}`)
  const running = names.map((name, index) => begin(`2001:db8:0:${index.toString(16)}::1`, name))
  assert.deepEqual(started, ['a0', 'a1'], 'a /48 counts as one network')
  await assert.rejects(begin('2001:db8::1', 'rejected'), { code: 'rate_limited', retryAfterS: 5 })
  running.push(begin('2001:db8:1::1', 'other'))
  assert.equal(started.at(-1), 'other')
  for (let done = 0; done < running.length; done++) {
    finish[done]?.()
    await new Promise(setImmediate)
  }
  await Promise.all(running)
  assert.deepEqual(started, ['a0', 'a1', 'other', ...names.slice(2)])
  await assert.rejects(
    enqueue('2001:db8::1', async () => {
      throw new Error('failed')
    }),
    /failed/,
  )
  assert.equal(await enqueue('2001:db8::1', async () => 'next'), 'next')
})
