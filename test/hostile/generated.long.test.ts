// Generated hostile traffic against every surface.
import { test } from 'node:test'
import { attack } from './attack.ts'
import { amount, seed } from './form.ts'

test('no generated traffic crashes a process, causes a 5xx or a second response, or leaks', (t) =>
  attack(t, { seed, ...amount }))
