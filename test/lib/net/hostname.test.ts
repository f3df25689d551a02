// The one rule for DNS labels, in code and in the schema of workspace slugs.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import Value from 'typebox/value'
import { Slug } from '../../../src/contract/fields.ts'
import { isDnsLabel } from '../../../src/lib/net/hostname.ts'

test('a DNS label has 1 to 63 lower-case letters, digits and hyphens between them', () => {
  for (const label of ['a', '0', 'a-b', 'a--b', 'x'.repeat(63)]) assert.equal(isDnsLabel(label), true, label)
  for (const text of ['', '-', '-a', 'a-', 'A', 'a.b', 'a_b', 'ä', 'a\n', 'x'.repeat(64)])
    assert.equal(isDnsLabel(text), false, JSON.stringify(text))
})

test('a workspace slug is a DNS label', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'z', '0', '-', '.', 'A', 'ä', '\n'), maxLength: 70 })
  fc.assert(fc.property(text, (slug) => isDnsLabel(slug) === Value.Check(Slug, slug)))
})
