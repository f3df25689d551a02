// A node without an HTTP server: it follows the change log and verifies keys.
import assert from 'node:assert/strict'
import type { Services } from '../../../src/server/domain/context.ts'
import { startChangeFollower } from '../../../src/server/verification/change-follower.ts'
import { startLastUsedTracker } from '../../../src/server/verification/last-used.ts'
import { createCredentialVerifier } from '../../../src/server/verification/verify.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'

type NodeServices = Pick<Services, 'store' | 'clock' | 'ids'>

const failTest = (error: unknown): void => assert.fail(String(error))

export async function startFollower(t: Test, { store, clock, ids }: NodeServices, onFailure = failTest) {
  const node = { id: ids('node'), host: 'here', pid: process.pid, version: '0' }
  const follower = await startChangeFollower(store, clock, node, { onFailure, onRecovery() {} })
  atEnd(t, () => follower.deregister())
  return follower
}

export async function startNode(t: Test, services: NodeServices, onFailure = failTest) {
  const { store, clock } = services
  const follower = await startFollower(t, services, onFailure)
  const lastUsed = startLastUsedTracker(store, clock, { onFailure() {}, onRecovery() {} })
  atEnd(t, () => lastUsed.stop())
  const rejected: string[] = []
  const onRejected = (hash: string) => rejected.push(hash)
  return {
    follower,
    rejected,
    verifier: createCredentialVerifier({ store, follower, lastUsed, onRejected, keysMax: 100 }),
  }
}
