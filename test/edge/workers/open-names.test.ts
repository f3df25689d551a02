// What the primary of an edge with several workers knows of their clients.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openLocalPorts } from '../../../src/edge/tcp/local-ports.ts'
import { OpenNames } from '../../../src/edge/workers/open-names.ts'
import { EdgePrimary } from '../../../src/edge/workers/primary.ts'
import { type ClaimedTunnel, openTokensFile } from '../../../src/edge-sdk/index.ts'
import { DAY_MS } from '../../../src/lib/time.ts'
import { createFolder } from '../../support/databases/create.ts'

const tunnel = (name: string, port = ''): ClaimedTunnel => ({
  id: `tun_${name}`,
  name,
  type: 'tcp',
  pool: false,
  url: `tcp://${name}.acme.tunnels.test${port}`,
  openedAt: '2026-01-01T00:00:00.000Z',
  workspace: 'acme',
  keyId: 'key_1',
  clientAddress: '192.0.2.1',
})

test('the port of a TCP tunnel is not given to another name while the tunnel is open', async (t) => {
  const folder = createFolder(t)
  const file = join(folder, 'tokens.json')
  writeFileSync(file, JSON.stringify({ tokens: [] }))
  let now = Date.parse('2026-01-01')
  const primary = new EdgePrimary({
    startVerifier: () => openTokensFile(file, { tunnelDomain: 'tunnels.test' }),
    startReporter: undefined,
    meter: undefined,
    localPorts: await openLocalPorts({
      ...{ folder, range: { first: 20_001, last: 20_001 }, perWorkspace: 10, retentionDays: 7 },
      clock: () => now,
    }),
    ...{ certificatesPerDay: 10, certificatesTotalPerDay: 10, onCertificatesLimited() {} },
    notify() {},
  })
  t.after(async () => {
    primary.onGone('1')
    await primary.stop()
  })
  primary.onNotice('1', 'attached', ['/socket'])
  const claim = (claimed: ClaimedTunnel) => primary.handleCall('1', 'claim', [claimed, 'key'])
  assert.deepEqual(await claim(tunnel('db')), { value: { granted: true, access: null, port: 20_001 } })
  primary.onNotice('1', 'opened', [tunnel('db', ':20001'), 'key'])
  now += 30 * DAY_MS
  const { value } = (await claim(tunnel('other'))) as { value: { reason: string } }
  assert.equal(value.reason, 'no_port')
})

test('a client that repeats its claim stays known to other workers', () => {
  const locations = new Set<string>()
  const names = new OpenNames((host, worker, isOpen) =>
    isOpen ? locations.add(`${host} ${worker}`) : locations.delete(`${host} ${worker}`),
  )
  names.claim(tunnel('db'), '1', 'key')
  names.claim(tunnel('db'), '1', 'key')
  assert.deepEqual([...locations], ['db.acme.tunnels.test 1'])
  names.remove('tun_db')
  assert.deepEqual([...locations], [])
})
