// The long form: npm run test:hostile. HOSTILE_SEED repeats a run.
import { test } from 'node:test'
import { attack } from './attack.ts'

test('hostile traffic, at length', (t) =>
  attack(t, {
    seed: process.env.HOSTILE_SEED || String(Date.now()),
    requests: 100_000,
    brokenConnections: 20_000,
    secondsMax: 540,
    onProgress: (line) => process.stdout.write(`${line}\n`),
  }))
