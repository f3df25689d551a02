import assert from 'node:assert/strict'
import { test } from 'node:test'
import { relativeTime } from '../../src/cli/relative-time.ts'

const NOW = Date.parse('2026-11-16T12:00:00.000Z')

test('times are relative, and deadlines in days have their last UTC day', () => {
  const cases: [iso: string, text: string][] = [
    ['2026-11-16T11:59:55.000Z', 'just now'],
    ['2026-11-16T11:57:00.000Z', '3 minutes ago'],
    ['2026-09-16T12:00:00.000Z', '2 months ago'],
    ['2026-11-16T17:00:00.000Z', 'in 5 hours'],
    ['2026-11-17T13:00:00.000Z', 'in 1 day (2026-11-17)'],
    ['2026-12-18T11:59:59.000Z', 'in 32 days (2026-12-18)'],
    ['2027-02-01T00:00:00.000Z', 'in 77 days (2027-01-31)'],
    ['2029-11-16T12:00:00.000Z', 'in 1096 days (2029-11-16)'],
  ]
  for (const [iso, text] of cases) assert.equal(relativeTime(iso, NOW), text)
})
