// A verifier of a real control plane, whose requests are recorded.
import {
  type ControlPlane,
  createControlPlane,
  startVerifier,
  type VerifierOptions,
} from '../../src/edge-sdk/index.ts'
import { createKey, revoke } from '../../src/server/domain/keys/lifecycle.ts'
import { addEdge, serve, type TestServer } from '../support/api/server.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import type { Engine } from '../support/databases/create.ts'
import { startRelay } from '../support/network/relay.ts'
import { until } from '../support/until.ts'

export const newKey = (server: TestServer) => createKey(server.ctx)

export const revokeKey = (server: TestServer, key: { id: string }) => revoke(server.ctx, key.id)

/** A verifier connected to a real server through a relay; its verification requests are recorded. */
export async function setUpVerifier(t: Test, options: VerifierOptions = {}, engine: Engine = 'sqlite') {
  const server = await serve(t, { engine })
  const edge = await addEdge(server)
  const relay = await startRelay(t, server.url)
  const direct = createControlPlane({ url: server.url, credential: edge.token })
  const relayed = createControlPlane({ url: relay.url, credential: edge.token })
  const { counted, requested } = counting(relayed)
  const notices: string[] = []
  const start = (controlPlane: ControlPlane) => {
    const verifier = startVerifier(controlPlane, { onNotice: (line) => notices.push(line), ...options })
    atEnd(t, verifier.close)
    return verifier
  }
  return { server, edge, relay, direct, relayed, counted, requested, notices, start }
}

/** Records every verification request. */
export function counting(controlPlane: ControlPlane) {
  const requested: string[] = []
  const verify = (key: string) => {
    requested.push(key)
    return controlPlane.verify(key)
  }
  return { counted: { ...controlPlane, verify }, requested }
}

/** Waits until the cache is in use: verifying twice sends at most one request. */
export async function warm(
  verifier: { verify(key: string): Promise<unknown> },
  key: string,
  requested: string[],
) {
  await until('a key is cached', async () => {
    const before = requested.length
    await verifier.verify(key)
    await verifier.verify(key)
    return requested.length <= before + 1
  })
}
