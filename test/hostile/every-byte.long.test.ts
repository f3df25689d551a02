// Connections to the control plane and to an edge that break at every byte: those of their own APIs, and of
// requests through a tunnel.
import { after, test } from 'node:test'
import { openingsFor } from '../support/network/broken-connections.ts'
import { prefixes } from './form.ts'
import { startControlPlane, startEdge } from './targets.ts'
import { withstand } from './withstand.ts'

const plane = await startControlPlane({ after })
const edge = await startEdge({ after })

test('API: connections broken after every byte crash nothing and leak nothing', async (t) => {
  const made = await withstand(plane.target, prefixes(openingsFor(plane.api)))
  t.diagnostic(`${made} connections`)
})

test('edge API: connections broken after every byte crash nothing and leak nothing', async (t) => {
  const made = await withstand(plane.target, prefixes(openingsFor(plane.edges)))
  t.diagnostic(`${made} connections`)
})

test('edge: connections broken after every byte crash nothing and leak nothing', async (t) => {
  const made = await withstand(edge.target, prefixes(openingsFor(edge.own)))
  t.diagnostic(`${made} connections`)
})

test('tunnel: connections broken after every byte crash nothing and leak nothing', async (t) => {
  const made = await withstand(edge.target, prefixes(openingsFor(edge.tunneled)))
  t.diagnostic(`${made} connections`)
})
