// The primary of an edge with several workers.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { EdgeOptions } from '../../../src/edge/options.ts'
import { EdgePrimary } from '../../../src/edge/workers/primary.ts'
import { type ClaimedTunnel, openTokensFile, type UsageQuota } from '../../../src/edge-sdk/index.ts'
import { hashSecret } from '../../../src/lib/credentials/secret.ts'
import { createFolder } from '../../support/databases/create.ts'
import { until } from '../../support/until.ts'

const tunnel: ClaimedTunnel = {
  ...{ id: 'tun_1', name: 'app', type: 'http', pool: false, workspace: 'acme', keyId: 'tok_1' },
  url: 'http://app.acme.tunnels.test',
  openedAt: '2026-01-01T00:00:00.000Z',
  clientAddress: '192.0.2.1',
}

type Callbacks = Parameters<EdgeOptions['startVerifier']>[0]

/** A primary of the workers 1 and 2. */
function startPrimary(
  t: TestContext,
  { notify = () => {} }: { notify?: (worker: string, name: string, args: unknown[]) => void } = {},
) {
  const file = join(createFolder(t), 'tokens.json')
  writeFileSync(file, JSON.stringify({ tokens: [] }))
  let verifierCallbacks: Callbacks | undefined
  const primary = new EdgePrimary({
    startVerifier(callbacks) {
      verifierCallbacks = callbacks
      return openTokensFile(file, { tunnelDomain: 'tunnels.test' })
    },
    ...{ startReporter: undefined, meter: undefined, localPorts: undefined },
    ...{ certificatesPerDay: 10, certificatesTotalPerDay: 10, onCertificatesLimited() {} },
    notify,
  })
  t.after(async () => {
    for (const worker of ['1', '2']) primary.onGone(worker)
    await primary.stop()
  })
  return { primary, callbacks: verifierCallbacks as Callbacks }
}

test('a worker that starts after changes were missed gets no quota from before', (t) => {
  const states: { quotas: [string, UsageQuota][] }[] = []
  const { primary, callbacks } = startPrimary(t, {
    notify(_worker, name, args) {
      if (name === 'state') states.push(args[0] as (typeof states)[number])
    },
  })
  const reached: UsageQuota = { revision: 1, level: 'reached', until: '2100-01-01T00:00:00.000Z' }
  callbacks.onQuota('acme', reached)
  primary.onNotice('1', 'attached', ['/socket'])
  assert.deepEqual(states.at(-1)?.quotas, [['acme', reached]])
  void callbacks.onReset()
  primary.onNotice('2', 'attached', ['/socket'])
  assert.deepEqual(states.at(-1)?.quotas, [])
})

test('what a worker of a later version sends and this one does not know changes nothing', async (t) => {
  const { primary } = startPrimary(t)
  primary.onNotice('1', 'attached', ['/socket'])
  primary.onNotice('1', 'later', ['value'])
  const { error } = (await primary.handleCall('1', 'later', [])) as { error: string }
  assert.equal(typeof error, 'string')
})

test('after changes were missed, the keys of all clients are verified once, and those that are not valid end at every worker', async (t) => {
  const sent: [worker: string, name: string, args: unknown[]][] = []
  const { primary, callbacks } = startPrimary(t, { notify: (...notice) => sent.push(notice) })
  const change = () =>
    sent.filter(([, name]) => name === 'apply').map(([worker, , args]) => [worker, ...args])
  for (const worker of ['1', '2']) primary.onNotice(worker, 'attached', ['/socket'])
  const reset = callbacks.onReset() as Promise<void>
  assert.deepEqual(change(), [
    ['1', 1, ['onReset'], 'close'],
    ['2', 1, ['onReset'], 'close'],
  ])
  // The worker opened it with a key that was verified before. The tokens file does not have the key.
  primary.onNotice('1', 'opened', [tunnel, 'adit_unknown'])
  primary.onNotice('1', 'applied', [1])
  primary.onNotice('2', 'applied', [1])
  await until('the key is revoked', () => change().length === 4)
  const revoked = ['onRevoked', tunnel.keyId, 'revoked', hashSecret('adit_unknown')]
  assert.deepEqual(change().slice(2), [
    ['1', 2, revoked, 'close'],
    ['2', 2, revoked, 'close'],
  ])
  primary.onNotice('1', 'closed', [tunnel.id])
  for (const sequence of [2, 3])
    for (const worker of ['1', '2']) {
      await until('it is asked', () => change().some(([id, number]) => id === worker && number === sequence))
      primary.onNotice(worker, 'applied', [sequence])
    }
  await reset
})
