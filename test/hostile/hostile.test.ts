// Generated hostile traffic against every surface, in seconds; `npm run test:hostile` does the same for minutes.
import { test } from 'node:test'
import { attack } from './attack.ts'

test('no generated traffic takes down a process, is answered twice or with 5xx, or leaves anything behind', (t) =>
  attack(t, {
    seed: process.env.HOSTILE_SEED || String(Date.now()),
    requests: 4_000,
    brokenConnections: 800,
    secondsMax: 90,
  }))
