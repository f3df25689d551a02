// What a client that opens a tunnel gets when the edge cannot claim its name.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NameClaims } from '../../../src/edge/admission/name-claims.ts'
import { invalidKey } from '../../../src/edge/admission/rejections.ts'
import type { TunnelClient } from '../../../src/edge/tunnels/client.ts'
import { ControlPlaneError } from '../../../src/edge-sdk/index.ts'

const KEY = {
  valid: true as const,
  keyId: 'tok_1',
  workspace: { slug: 'acme', name: 'Acme', provisioned: true, tunnelBase: 'acme.tunnels.test', topic: 't' },
}

/** The results of two claims that fail with the error: of a name that is open here, and of another. */
async function claimBoth(error: ControlPlaneError) {
  const names = new NameClaims({
    claim: () => Promise.reject(error),
    opened: () => undefined,
    closed: () => undefined,
    syncNow: () => undefined,
    mayCarry: () => true,
    mayCarryUntil: () => undefined,
    release: async () => undefined,
    stop: async () => undefined,
  })
  const tunnel = (name: string) => ({
    ...{ id: `tun_${name}`, name, workspace: 'acme', type: 'http' as const, pool: false, keyId: KEY.keyId },
    url: `https://${name}.acme.tunnels.test`,
    clientAddress: '192.0.2.7',
    openedAt: new Date().toISOString(),
  })
  const client = { key: { secret: 'key' } } as TunnelClient
  names.opened(tunnel('held'), client, { key: KEY, rules: null })
  const claim = (name: string) => names.claim('key', tunnel(name))
  return { held: await claim('held'), other: await claim('other') }
}

const claimMessage = (result: object) => ('message' in result ? result.message : 'granted')

test('without a response, a name that is open here is granted, and others are not', async () => {
  const { held, other } = await claimBoth(
    new ControlPlaneError('https://adit.test cannot be reached: reset.'),
  )
  assert.equal(claimMessage(held), 'granted')
  assert.match(String(claimMessage(other)), /^The edge cannot reach its control plane to claim the name\./)
})

test('an error of the control plane is passed on, and a name that is open here is granted', async () => {
  const message = 'The control plane responded with 503: The database is unavailable.'
  const { held, other } = await claimBoth(new ControlPlaneError(message, 503))
  assert.equal(claimMessage(held), 'granted')
  assert.deepEqual(other, { status: 503, error: 'unavailable', message })
})

test('too many claims in progress are not an outage: no name is granted, also not an open one', async () => {
  const message = 'Too many names are being claimed. Retry shortly.'
  const { held, other } = await claimBoth(new ControlPlaneError(message, 429))
  for (const result of [held, other]) assert.deepEqual(result, { status: 503, error: 'unavailable', message })
})

test('an edge whose credential is rejected grants no name, and gives the reason', async () => {
  const { held, other } = await claimBoth(new ControlPlaneError('The control plane responded with 401', 401))
  for (const result of [held, other])
    assert.match(String(claimMessage(result)), /^The control plane rejects the credential of this edge\./)
})

test('an unknown reason, of a newer control plane, has a message', () => {
  const { message } = invalidKey({ valid: false, reason: 'suspended' as 'revoked' })
  assert.equal(message, 'This API key is not valid. Use another key.')
})
