// Invalid reports of the maximum size are rejected quickly and delay no other request.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { populate } from '../../../support/api/clients.ts'
import { caller } from '../../../support/api/server.ts'
import { counter } from '../../../support/api/usage.ts'
import { createDatabase } from '../../../support/databases/create.ts'
import { assertUndelayed } from '../../../support/network/latency.ts'
import { startServing } from '../../../support/processes/process.ts'

const BYTES = 4 * 1024 * 1024 - 100
const CONCURRENT_REPORTS = 4

/** Joins what `part` returns with commas, up to the size of a report. */
function fill(part: (index: number) => string, open: string, close: string): string {
  const parts: string[] = []
  for (let bytes = 0, index = 0; ; index++) {
    const next = part(index)
    bytes += next.length + 1
    if (bytes > BYTES - open.length - close.length) return open + parts.join(',') + close
    parts.push(next)
  }
}

const item = (given: object) => JSON.stringify(counter(given))

const counters = (part: (index: number) => string) => fill(part, '{"epoch":"e","counters":[', ']}')
const depth = Math.floor(BYTES / 12)

const bodies: Record<string, string> = {
  'a list of numbers': counters(() => '1'),
  'a list of empty objects': counters(() => '{}'),
  'a list of items with a mistake each': counters(() => item({ requests: -1 })),
  'too many valid items': counters(() => item({})),
  'objects that all differ': counters((index) => `{"${index.toString(36)}":1}`),
  'nested lists': `{"epoch":"e","counters":${'['.repeat(depth * 5)}${']'.repeat(depth * 5)}}`,
  'nested objects': `{"epoch":"e","counters":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`,
  'one object with very many members': fill((index) => `"k${index.toString(36)}":1`, '{', '}'),
  'one member very many times': fill(() => '"epoch":"e"', '{', '}'),
  'a very long string': `{"epoch":"${'e'.repeat(BYTES - 20)}"}`,
  'a very long number': `{"epoch":${'1'.repeat(BYTES - 20)}}`,
  'broken at its end': counters(() => '1').slice(0, -2),
  'as many items as may be, the last one wrong': `{"epoch":"e","counters":[${[
    ...Array(4_999).fill(item({ note: 'x'.repeat(600) })),
    item({ events: -1 }),
  ].join(',')}]}`,
  'as many different objects as may be': `{"epoch":"e","counters":[${Array.from(
    { length: 24_500 },
    (_, index) => `{"${index.toString(36).padStart(150, 'k')}":1}`,
  ).join(',')}]}`,
}

test('four concurrent invalid reports of 4 MiB delay other requests by less than 300 ms', async (t) => {
  const database = await createDatabase(t, 'sqlite')
  const secrets = await populate(database)
  const node = await startServing(t, { ADIT_DATABASE_URL: database, ADIT_LOG_LEVEL: 'silent' })
  const edge = caller(`${node.url}/edge/v1`, secrets.edge)
  const targets = [{ url: `${node.api}/workspace`, key: secrets.key }, { url: `${node.url}/healthz` }]
  for (const [what, body] of Object.entries(bodies))
    await t.test(what, (t) =>
      assertUndelayed(t, targets, async () => {
        const sent = Array.from({ length: CONCURRENT_REPORTS }, () => edge('POST', '/usage', { json: body }))
        for (const { status, json, text } of await Promise.all(sent)) {
          assert.equal(status, 400, text)
          assert.ok(json.details.length >= 1 && json.details.length <= 20, text)
          assert.match(json.details[0].path, /^\/body/)
          assert.ok(text.length < 4_000, `${text.length} characters of details`)
        }
      }),
    )
})
