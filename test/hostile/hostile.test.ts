// Generated hostile traffic against every surface.
import { test } from 'node:test'
import { attack } from './attack.ts'
import { amount, seed } from './form.ts'

test('no generated traffic takes down a process, is answered twice or with 5xx, or leaves anything behind', (t) =>
  attack(t, { seed, ...amount }))
