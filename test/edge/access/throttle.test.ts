// Attempts with wrong passwords are limited, and do not lock out clients with the right password.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startPasswordEdge } from './password-edge.ts'

const { beta, attempt, guess, open } = await startPasswordEdge({ after })
const ATTEMPTS = 10
const REFILL_MS = 10_000

/**
 * Sends wrong passwords until one is rejected unverified, and returns that response. Every ten seconds allow
 * one more attempt, and on a busy machine the hashes may take that long.
 */
async function exhaustAttempts(send: (index: number) => ReturnType<typeof guess>) {
  const startedAt = performance.now()
  for (let count = 0; ; count += 1) {
    const response = await send(count)
    const refilled = Math.floor((performance.now() - startedAt) / REFILL_MS)
    const isLimited = response.status === 429
    assert.equal(response.status, isLimited ? 429 : 401)
    assert.ok(isLimited ? count >= ATTEMPTS : count < ATTEMPTS + refilled, `attempt ${count + 1}`)
    if (isLimited) return response
  }
}

test('an address has ten attempts, then one every ten seconds, at all tunnels together', async () => {
  const [one, two] = [await open('one'), await open('two')]
  const limited = await exhaustAttempts((index) => guess(index % 2 ? one.host : two.host, '203.0.113.1'))
  const retryAfter = Number(limited.headers['retry-after'])
  assert.ok(retryAfter >= 1 && retryAfter <= 10, String(retryAfter))
  assert.match(String(limited.body), /^Too many attempts to sign in\. You can try again in \d+ seconds?\.\n/)
  // Other addresses are not limited.
  assert.equal((await guess(one.host, '203.0.113.2')).status, 401)
  assert.equal((await attempt(one.host, 'correct horse', '203.0.113.2')).status, 200)
  // A password that a tunnel has accepted from any address is not limited at this tunnel.
  assert.equal((await attempt(one.host, 'correct horse', '203.0.113.1')).status, 200)
  assert.equal((await attempt(two.host, 'correct horse', '203.0.113.1')).status, 429)
  for (const tunnel of [one, two]) tunnel.close()
})

test('clients whose address is not known share ten attempts at each tunnel', async () => {
  const [one, two] = [await open('unknown-one'), await open('unknown-two')]
  // The test connects from loopback, like a trusted proxy that does not name its clients.
  await exhaustAttempts(() => guess(one.host))
  assert.equal((await attempt(one.host, 'correct horse')).status, 429)
  assert.equal((await attempt(one.host, 'correct horse', '203.0.113.9')).status, 200)
  assert.equal((await attempt(one.host, 'correct horse')).status, 200)
  await exhaustAttempts(() => guess(two.host))
  for (const tunnel of [one, two]) tunnel.close()
})

test('repeating the same wrong password counts as one attempt', async () => {
  const tunnel = await open('again')
  for (let index = 0; index < 3 * ATTEMPTS; index += 1)
    assert.equal((await attempt(tunnel.host, 'an old password', '203.0.113.3')).status, 401)
  assert.equal((await attempt(tunnel.host, 'correct horse', '203.0.113.3')).status, 200)
  tunnel.close()
})

test('simultaneous requests with the right password count as one attempt', async () => {
  const tunnel = await open('page')
  const responses = Array.from({ length: 50 }, () => attempt(tunnel.host, 'correct horse', '203.0.113.4'))
  for (const { status } of await Promise.all(responses)) assert.equal(status, 200)
  tunnel.close()
})

test('all addresses of an IPv6 network share ten attempts', async () => {
  const tunnel = await open('ipv6')
  await exhaustAttempts((index) => guess(tunnel.host, `2001:db8:1:${index}::1`))
  assert.equal((await guess(tunnel.host, '2001:db8:2::1')).status, 401)
  tunnel.close()
})

test('a flood of wrong passwords does not lock out clients with the right one', async (t) => {
  const attacked = await open('attacked')
  const fresh = await open('fresh', beta)
  await attempt(attacked.host, 'correct horse', '198.51.100.1')
  let flooding = true
  let client = 0
  const flood = async () => {
    const seen = new Set<number>()
    while (flooding) {
      client += 1
      const address = `100.${64 + ((client >> 16) & 63)}.${(client >> 8) & 255}.${client & 255}`
      seen.add((await guess(attacked.host, address)).status)
    }
    return seen
  }
  const floods = Array.from({ length: 25 }, flood)
  t.after(() => {
    flooding = false
  })
  // The queue of the attacked tunnel is full, and that of another tunnel is not.
  assert.equal((await attempt(fresh.host, 'correct horse', '198.51.100.2')).status, 200)
  for (let index = 0; index < 20; index += 1)
    assert.equal((await attempt(attacked.host, 'correct horse', `198.51.100.${index}`)).status, 200)
    // Other tunnels with passwords can be opened during the flood.
  ;(await open('late', beta)).close()
  flooding = false
  const statuses = new Set((await Promise.all(floods)).flatMap((seen) => [...seen]))
  assert.deepEqual([...statuses].sort(), [401, 429])
  for (const tunnel of [attacked, fresh]) tunnel.close()
})
