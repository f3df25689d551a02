// Quotas at an edge with several workers.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { EdgeOptions } from '../../../src/edge/start.ts'
import { EdgePrimary } from '../../../src/edge/workers/primary.ts'
import { openTokensFile, type UsageQuota } from '../../../src/edge-sdk/index.ts'
import { createFolder } from '../../support/databases/create.ts'

test('a worker that starts after changes were missed gets no quota from before', async (t) => {
  const file = join(createFolder(t), 'tokens.json')
  writeFileSync(file, JSON.stringify({ tokens: [] }))
  let callbacks: Parameters<EdgeOptions['startVerifier']>[0] | undefined
  const states: { quotas: [string, UsageQuota][] }[] = []
  const primary = new EdgePrimary({
    startVerifier(options) {
      callbacks = options
      return openTokensFile(file, { tunnelDomain: 'tunnels.test' })
    },
    ...{ startReporter: undefined, meter: undefined, localPorts: undefined },
    ...{ certificatesPerDay: 10, certificatesTotalPerDay: 10, onCertificatesLimited() {} },
    notify(_worker, name, args) {
      if (name === 'state') states.push(args[0] as (typeof states)[number])
    },
  })
  t.after(async () => {
    for (const worker of ['1', '2']) primary.onGone(worker)
    await primary.stop()
  })
  const reached: UsageQuota = { revision: 1, level: 'reached', until: '2100-01-01T00:00:00.000Z' }
  callbacks?.onQuota('acme', reached)
  primary.onNotice('1', 'attached', ['/socket'])
  assert.deepEqual(states.at(-1)?.quotas, [['acme', reached]])
  void callbacks?.onReset()
  primary.onNotice('2', 'attached', ['/socket'])
  assert.deepEqual(states.at(-1)?.quotas, [])
})
