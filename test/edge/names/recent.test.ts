// Names that a key may open again while the control plane is unreachable.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NO_RULES } from '../../../src/edge/access/access-control.ts'
import { RecentNames } from '../../../src/edge/admission/recent-names.ts'

const MINUTE_MS = 60_000
const recent = (keyId: string) => ({
  key: {
    valid: true as const,
    keyId,
    workspace: { slug: 'acme', name: 'Acme', provisioned: true, tunnelBase: 'acme.tunnels.test', topic: 't' },
  },
  rules: null,
})

function setUp() {
  let now = 0
  const names = new RecentNames(() => now)
  const advance = (ms: number) => {
    now += ms
  }
  return { names, advance }
}

test('a name is kept while it is open, and for ten minutes after its last client, with its rules', () => {
  const { names, advance } = setUp()
  names.opened('key', 'app', recent('tok_1'))
  names.opened('key', 'app', recent('tok_1'))
  advance(60 * MINUTE_MS)
  names.closed('key', 'app', NO_RULES)
  advance(60 * MINUTE_MS)
  assert.equal(names.find('key', 'app')?.key.keyId, 'tok_1')
  const rules = { basicAuth: null, allowIp: ['192.0.2.0/24'] }
  names.closed('key', 'app', rules)
  advance(10 * MINUTE_MS - 1)
  assert.deepEqual(names.find('key', 'app')?.rules, rules)
  assert.equal(names.find('other', 'app'), undefined)
  assert.equal(names.find('key', 'other'), undefined)
  advance(1)
  assert.equal(names.find('key', 'app'), undefined)
})

test('a name is not kept if it was released, or if its key was revoked or may have been', () => {
  const { names } = setUp()
  for (const name of ['released', 'revoked', 'unsure']) names.opened('key', name, recent(`tok_${name}`))
  names.closed('key', 'released', undefined)
  names.closed('key', 'revoked', NO_RULES)
  names.closed('key', 'unsure', NO_RULES)
  assert.equal(names.find('key', 'released'), undefined)
  names.removeKeys(({ keyId }) => keyId === 'tok_revoked')
  assert.equal(names.find('key', 'revoked'), undefined)
  assert.ok(names.find('key', 'unsure'))
  names.removeClosed()
  assert.equal(names.find('key', 'unsure'), undefined)
})

test('changed rules apply to a name of one workspace, open or closed, with every key', () => {
  const { names } = setUp()
  const other = recent('tok_3')
  other.key.workspace.slug = 'other'
  names.opened('open', 'app', recent('tok_1'))
  names.opened('open', 'app', recent('tok_1'))
  names.opened('closed', 'app', recent('tok_2'))
  names.closed('closed', 'app', NO_RULES)
  names.opened('open', 'my-app', recent('tok_1'))
  names.opened('other', 'app', other)
  const rules = { basicAuth: null, allowIp: ['192.0.2.0/24'] }
  names.setRules('acme', 'app', rules)
  assert.equal(names.find('open', 'app')?.rules, rules)
  assert.equal(names.find('closed', 'app')?.rules, rules)
  assert.equal(names.find('open', 'my-app')?.rules, null)
  assert.equal(names.find('other', 'app')?.rules, null)
  // Also after the name was opened again.
  names.opened('closed', 'app', recent('tok_2'))
  names.setRules('acme', 'app', rules)
  assert.equal(names.find('closed', 'app')?.rules, rules)
})

test('the least recently closed of too many names is dropped', () => {
  const { names } = setUp()
  for (let index = 0; index <= 10_000; index++) {
    names.opened('key', `app-${index}`, recent('tok_1'))
    names.closed('key', `app-${index}`, NO_RULES)
  }
  assert.equal(names.find('key', 'app-0'), undefined)
  assert.ok(names.find('key', 'app-1'))
  assert.ok(names.find('key', 'app-10000'))
})
