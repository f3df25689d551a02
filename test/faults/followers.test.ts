// Many nodes: no key is accepted after its revocation was acknowledged, although acknowledgments are lost.
import { test } from 'node:test'
import { assertFollowers } from './run.ts'

test('many nodes keep the guarantee while links stall and crashes lose acknowledgments', (t) =>
  assertFollowers(t, { followers: 30, seconds: 7 }))
