import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createNetworkMatcher, parseNetwork } from '../../../src/lib/net/ip-network.ts'

test('networks have one canonical form', () => {
  const forms = {
    '192.0.2.7': '192.0.2.7/32',
    '10.0.0.0/8': '10.0.0.0/8',
    '0.0.0.0/0': '0.0.0.0/0',
    '2001:DB8:0:0::1': '2001:db8::1/128',
    '2001:db8::/32': '2001:db8::/32',
    '::/0': '::/0',
    '::ffff:192.0.2.7': '192.0.2.7/32',
    '::ffff:192.0.2.0/120': '192.0.2.0/24',
  }
  for (const [text, network] of Object.entries(forms)) {
    assert.equal(parseNetwork(text), network)
    assert.equal(parseNetwork(network), network)
  }
})

test('what is not a network is rejected', () => {
  const texts = [
    '',
    '/',
    '/8',
    '10.0.0.0/',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/8/8',
    '10.0.0/8',
    ' 10.0.0.1',
  ]
  texts.push(
    '2001:db8::/129',
    '::ffff:10.0.0.0/95',
    '::ffff:10.0.0.0/129',
    '[::1]/128',
    '::1:80/x',
    'fe80::1%eth0',
  )
  texts.push('127.0.0.1:80', 'localhost', '0x7f.0.0.1', '010.0.0.1', '10.0.0.0/0x8', '1'.repeat(10_000))
  for (const text of texts) assert.equal(parseNetwork(text), undefined, text.slice(0, 50))
})

test('an address is in a network if its first bits are those of the network', () => {
  const isIn = createNetworkMatcher(['192.0.2.0/25', '198.51.100.9/32', '2001:db8:0:8000::/49'])
  for (const address of ['192.0.2.0', '192.0.2.127', '198.51.100.9', '2001:db8:0:ffff::1'])
    assert.ok(isIn(address))
  for (const address of ['192.0.2.128', '192.0.1.255', '198.51.100.8', '2001:db8:0:7fff::1', '::1'])
    assert.ok(!isIn(address))
  assert.ok(!createNetworkMatcher([])('192.0.2.1'))
  const isIpv4 = createNetworkMatcher(['0.0.0.0/0'])
  assert.deepEqual([isIpv4('8.8.8.8'), isIpv4('2001:db8::1')], [true, false])
  for (const network of ['::/0', '::/64', '::ffff:0:0/64', '64:ff9b::/96']) {
    const isIpv6 = createNetworkMatcher([parseNetwork(network) ?? network])
    assert.ok(!isIpv6('8.8.8.8'), network)
  }
})
