// Adit as a process: how soon it is there, and whether it stays as it is.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { get } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../test/support/ports.ts'
import type { Figure } from '../figure.ts'
import type { Ask } from '../load/jobs.ts'
import { end, residentOf, spawnAdit } from '../processes.ts'
import { compare, type Measured, median } from '../rounds.ts'
import { keysPlan } from '../seed/catalog.ts'
import { today } from '../seed/plan.ts'
import { bearer, CONNECTIONS, ownKey, reading, reportOf } from '../sides.ts'
import type { Workbench } from '../workbench.ts'

const LOOK_EVERY_MS = 4

async function start(bench: Workbench): Promise<Measured> {
  const database = await bench.sqlite('keys-1000', keysPlan(1_000))
  const log = join(bench.folder, 'start.log')
  const ours = async () => {
    const port = await freePort()
    const began = performance.now()
    const child = spawnAdit(database, log, { ADIT_PORT: String(port) })
    while (!(await isReady(port))) await sleep(LOOK_EVERY_MS)
    const value = performance.now() - began
    await end(child)
    return { value }
  }
  const other = async () => {
    const began = performance.now()
    await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'exit')
    return { value: performance.now() - began }
  }
  return compare(ours, other)
}

const isReady = (port: number) =>
  new Promise<boolean>((resolve) => {
    get({ port, host: '127.0.0.1', path: '/readyz', agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    }).once('error', () => resolve(false))
  })

const SOAK_S = 120
const SETTLED_S = 30
const LAST_S = 10

/** Verifications, reads of both kinds, and small reports now and then. */
function mixture(bench: Workbench): Ask[] {
  const { keys, edge } = bench.minted()
  const token = ownKey(bench)
  const headers = bearer(edge.token)
  const verifications = keys
    .slice(0, 2_000)
    .map((key): Ask => ({ method: 'POST', path: '/edge/v1/keys/verify', headers, body: `{"key":"${key}"}` }))
  const report: Ask = {
    method: 'POST',
    path: '/edge/v1/usage',
    headers,
    body: reportOf(today(), { from: 2, count: 5 }),
  }
  return verifications.flatMap((verification, index) => [
    verification,
    ...(index % 2 === 0 ? [reading('/api/v1/workspace', token)] : []),
    ...(index % 10 === 0 ? [reading('/api/v1/usage?days=30', token)] : []),
    ...(index % 50 === 0 ? [report] : []),
  ])
}

async function soak(bench: Workbench): Promise<Measured> {
  const served = await bench.adit(await bench.sqlite('keys-100000', keysPlan(100_000)))
  const resident: { at: number; mib: number }[] = []
  const began = performance.now()
  residentOf(served.pid)
  const watch = setInterval(() => {
    try {
      resident.push({ at: (performance.now() - began) / 1000, mib: residentOf(served.pid) })
    } catch {
      // It is gone; the load will fail of that, and say so.
    }
  }, 500)
  const loaded = await bench.load
    .run(
      {
        url: served.url,
        connections: CONNECTIONS,
        draw: { kind: 'requests', requests: mixture(bench), each: 'all' },
        until: { seconds: SOAK_S },
      },
      served.pid,
    )
    .finally(() => clearInterval(watch))
  const within = (from: number, to: number) =>
    median(resident.flatMap(({ at, mib }) => (at >= from && at < to ? [mib] : [])))
  const settled = within(SETTLED_S - LAST_S, SETTLED_S)
  const last = within(SOAK_S - LAST_S, Number.POSITIVE_INFINITY)
  const ratio = last / settled
  const most = Math.max(...resident.map(({ mib }) => mib))
  return {
    ratio,
    spread: [ratio, ratio],
    ours: last,
    other: settled,
    rounds: 1,
    note: `${Math.round(loaded.perSecond)} requests/s for ${SOAK_S} s, at most ${Math.round(most)} MiB`,
  }
}

export const processes: Figure[] = [
  {
    name: 'start',
    ours: 'adit serve until /readyz is 200, compile cache warm',
    other: 'node -e 0',
    unit: 'ms',
    reach: { atMost: 12 },
    measure: start,
  },
  {
    name: 'soak',
    ours: 'resident set in the last 10 s of two minutes of mixed load',
    other: 'in the seconds 20 to 30',
    unit: 'MiB',
    reach: { atMost: 1.2 },
    measure: soak,
  },
]
