import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatDuration } from '../../src/cli/duration.ts'

test('a duration is readable, however long it is', () => {
  const cases: [ms: number, text: string][] = [
    [0.4, '0 ms'],
    [5_321.2, '5321 ms'],
    [9_999.4, '9999 ms'],
    [9_999.6, '10.0 s'],
    [59_949, '59.9 s'],
    [59_950, '1m 00s'],
    [425_000, '7m 05s'],
    [3_599_499, '59m 59s'],
    [3_599_500, '1h 00m'],
    [3_600_000, '1h 00m'],
    [26 * 3_600_000 + 40 * 60_000, '26h 40m'],
  ]
  for (const [ms, text] of cases) assert.equal(formatDuration(ms), text)
})
