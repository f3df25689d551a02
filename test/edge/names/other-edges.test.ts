// Which clients an edge tells of edges that have appeared since they connected.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tellOtherEdges } from '../../../src/edge/tunnels/other-edges.ts'
import type { Tunnel } from '../../../src/edge/tunnels/tunnel.ts'

/** A tunnel with a client that was told of these edges, and what it is told later. */
function createTunnel(edges?: string[]) {
  const told: (readonly string[])[] = []
  const client = { tellOtherEdges: (urls: readonly string[]) => void told.push(urls) }
  const tunnel = { address: { edges }, clients: new Set([client]) } as unknown as Tunnel
  return { told, tell: (...urls: string[]) => tellOtherEdges([tunnel], urls) }
}

test('a client is told of an edge that it does not know, once', () => {
  const { told, tell } = createTunnel()
  tell()
  tell('https://b')
  tell('https://b')
  tell()
  tell('https://b')
  assert.deepEqual(told, [['https://b']])
  tell('https://c', 'https://b')
  assert.deepEqual(told.slice(1), [['https://c', 'https://b']])
})

test('a client is told of an edge that has taken the place of another one', () => {
  const { told, tell } = createTunnel(['https://b'])
  tell('https://c')
  assert.deepEqual(told, [['https://c']])
})

test('a client that knows three edges is not told each time the load of edges changes', () => {
  const { told, tell } = createTunnel(['https://b', 'https://c', 'https://d'])
  tell('https://e', 'https://b', 'https://c')
  assert.deepEqual(told, [])
  tell('https://e')
  assert.deepEqual(told, [['https://e']])
})
