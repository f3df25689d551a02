// Connections to the control plane that break at random bytes. The long tests break them at every byte.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openingsFor, randomCuts } from '../support/network/broken-connections.ts'
import { amount } from './form.ts'
import { startControlPlane } from './targets.ts'
import { withstand } from './withstand.ts'

const { target, api, edges } = await startControlPlane({ after })

test('concurrent broken connections of every kind crash nothing and leak nothing', async () => {
  const openings = [...openingsFor(api), ...openingsFor(edges)]
  const made = await withstand(target, randomCuts(openings, { seed: 'hostile', count: amount.cuts }))
  assert.equal(made, amount.cuts)
})
