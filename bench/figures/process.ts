// Adit as a process: startup time and memory.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { get } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../test/support/processes/ports.ts'
import type { Figure } from '../figure.ts'
import type { Fixtures } from '../fixtures.ts'
import type { RequestSpec } from '../load/jobs.ts'
import { end, residentMib, spawnServe } from '../processes.ts'
import { compare, type Measured, median, singleMeasurement } from '../rounds.ts'
import { bearer, CONNECTIONS, getRequest, ownKey, usageReport } from '../scenarios.ts'
import { keysPlan } from '../seed/catalog.ts'
import { today } from '../seed/plan.ts'

const LOOK_EVERY_MS = 4

async function start(fixtures: Fixtures): Promise<Measured> {
  const database = await fixtures.sqlite('keys-1000', keysPlan(1_000))
  const log = join(fixtures.folder, 'start.log')
  const ours = async () => {
    const port = await freePort()
    const began = performance.now()
    const child = spawnServe(database, log, { ADIT_PORT: String(port) })
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
const KEYS = 100_000

/** Verifications of every key, and between them reads of both kinds and small reports. */
function mixture(fixtures: Fixtures): RequestSpec[] {
  const { keys, edge } = fixtures.keys()
  const token = ownKey(fixtures)
  const headers = bearer(edge.token)
  const report: RequestSpec = {
    method: 'POST',
    path: '/edge/v1/usage',
    headers,
    body: usageReport(today(), { from: 2, count: 5 }),
  }
  return keys
    .slice(0, KEYS)
    .flatMap((key, index): RequestSpec[] => [
      { method: 'POST', path: '/edge/v1/keys/verify', headers, body: `{"key":"${key}"}` },
      ...(index % 2 === 0 ? [getRequest('/api/v1/workspace', token)] : []),
      ...(index % 10 === 0 ? [getRequest('/api/v1/usage?days=30', token)] : []),
      ...(index % 50 === 0 ? [report] : []),
    ])
}

/** Samples the resident set of a process twice a second. */
function watchMemory(pid: number) {
  const began = performance.now()
  const seen: { at: number; mib: number }[] = []
  const timer = setInterval(() => {
    try {
      seen.push({ at: (performance.now() - began) / 1000, mib: residentMib(pid) })
    } catch {
      // The process exited; the load fails and reports it.
    }
  }, 500)
  return {
    stop: () => clearInterval(timer),
    within: (from: number, to: number) =>
      median(seen.flatMap(({ at, mib }) => (at >= from && at < to ? [mib] : []))),
    most: () => Math.max(...seen.map(({ mib }) => mib)),
  }
}

/** Two minutes of mixed load. */
async function soak(fixtures: Fixtures): Promise<Measured> {
  const served = await fixtures.adit(await fixtures.sqlite(`keys-${KEYS}`, keysPlan(KEYS)))
  const requests = mixture(fixtures)
  const watched = watchMemory(served.pid)
  fixtures.progress(`${SOAK_S} s of mixed load`)
  const draw = { kind: 'requests', requests, each: 'all' } as const
  const { perSecond } = await fixtures.load
    .run({ url: served.url, connections: CONNECTIONS, draw, until: { seconds: SOAK_S } }, served.pid)
    .finally(watched.stop)
  return {
    ...singleMeasurement(
      watched.within(SOAK_S - LAST_S, SOAK_S),
      watched.within(SETTLED_S - LAST_S, SETTLED_S),
    ),
    note: `${Math.round(perSecond)} requests/s for ${SOAK_S} s, at most ${Math.round(watched.most())} MiB`,
  }
}

export const processes: Figure[] = [
  {
    name: 'start',
    ours: 'adit serve until /readyz is 200, compile cache warm',
    other: 'node -e 0',
    unit: 'ms',
    target: { atMost: 9 },
    measure: start,
  },
  {
    name: 'soak',
    ours: 'resident set in the last 10 s of two minutes of mixed load',
    other: 'in the seconds 20 to 30',
    unit: 'MiB',
    target: { atMost: 1.2 },
    measure: soak,
  },
]
