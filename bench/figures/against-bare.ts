// The overhead per request, compared with a bare node:http server that sends the same bytes.
import type { Figure } from '../figure.ts'
import type { Fixtures } from '../fixtures.ts'
import type { RequestSpec } from '../load/jobs.ts'
import type { Served } from '../processes.ts'
import { compare, type Measured, measuredOf, type Sample } from '../rounds.ts'
import { CONNECTIONS, getting, ownKey, reading, requestOnce } from '../scenarios.ts'
import { keysPlan } from '../seed/catalog.ts'

/** Node sets these itself. */
const BY_NODE = new Set(['date', 'connection', 'keep-alive'])

/** A bare server that sends the same response as Adit. */
export async function startBare(fixtures: Fixtures, ours: Served, spec: RequestSpec): Promise<Served> {
  const { status, rawHeaders, body } = await requestOnce(ours.url, spec)
  const names = rawHeaders.filter((_, index) => index % 2 === 0)
  const headers = Object.fromEntries(
    names.flatMap((name, index) =>
      BY_NODE.has(name.toLowerCase()) ? [] : [[name, rawHeaders[index * 2 + 1] as string]],
    ),
  )
  const date = names.some((name) => name.toLowerCase() === 'date')
  const keepAliveS = Number(/keep-alive,timeout=(\d+)/i.exec(rawHeaders.join(','))?.[1] ?? 5)
  const bare = await fixtures.baseline('bare', { status, headers, body, date, keepAliveS })
  const sizes = [sizeOf(rawHeaders), sizeOf((await requestOnce(bare.url, spec)).rawHeaders)]
  if (sizes[0] !== sizes[1])
    fixtures.progress(`the bare server's headers differ: ${sizes.join(' and ')} bytes`)
  return bare
}

const sizeOf = (rawHeaders: string[]) => rawHeaders.join('  ').length

export async function startBoth(fixtures: Fixtures, path: string) {
  const ours = await fixtures.adit(await fixtures.sqlite('keys-1000', keysPlan(1_000)))
  const spec = reading(path, ownKey(fixtures))
  return { spec, ours, bare: await startBare(fixtures, ours, spec) }
}

async function measure(fixtures: Fixtures, path: string) {
  const { spec, ours, bare } = await startBoth(fixtures, path)
  return compare(await getting(fixtures, ours, spec), await getting(fixtures, bare, spec))
}

/** Long enough for dozens of requests beyond the 99th percentile. */
const PACED_S = 2

type Latencies = Record<'p50' | 'p99', Measured>

/** At half of Adit's maximum throughput. */
async function measureLatencies(fixtures: Fixtures): Promise<Latencies> {
  const { spec, ours, bare } = await startBoth(fixtures, '/api/v1/workspace')
  await (await getting(fixtures, bare, spec))(-1)
  const atMost = await getting(fixtures, ours, spec)
  await atMost(-1)
  const { value: most } = await atMost(0)
  const perSecond = Math.floor(most / 2)
  const note = `at ${perSecond} requests a second`
  const tails = { ours: [] as Sample[], bare: [] as Sample[] }
  const paced = (served: Served, tail: Sample[]) => async (round: number) => {
    const seconds = round < 0 ? 1 : PACED_S
    const pace = { url: served.url, connections: CONNECTIONS, request: spec, perSecond, seconds }
    const { p50, p99, busy } = await fixtures.load.pace(pace, served.pid)
    if (round >= 0) tail.push({ value: p99, busy })
    return { value: p50, busy }
  }
  const p50 = await compare(paced(ours, tails.ours), paced(bare, tails.bare))
  return { p50: { ...p50, note }, p99: { ...measuredOf(tails.ours, tails.bare), note } }
}

/** Both percentiles come from one measurement. */
const latencies = new WeakMap<Fixtures, Promise<Latencies>>()

async function latency(fixtures: Fixtures, percentile: 'p50' | 'p99'): Promise<Measured> {
  const both = latencies.get(fixtures) ?? measureLatencies(fixtures)
  latencies.set(fixtures, both)
  return (await both)[percentile]
}

export const againstBare: Figure[] = [
  {
    name: 'workspace_vs_bare',
    ours: 'GET /workspace with a key, headers and log as shipped',
    other: 'the same bytes from a bare node:http server',
    unit: 'requests/s',
    target: { atLeast: 0.9 },
    measure: (fixtures) => measure(fixtures, '/api/v1/workspace'),
  },
  {
    name: 'usage_vs_bare',
    ours: 'GET /usage?days=365 with a key, a full year of data',
    other: 'the same bytes from a bare node:http server',
    unit: 'requests/s',
    target: { atLeast: 0.75 },
    measure: (fixtures) => measure(fixtures, '/api/v1/usage?days=365'),
  },
  ...(['p50', 'p99'] as const).map(
    (percentile): Figure => ({
      name: `latency_${percentile}`,
      ours: `GET /workspace, ${percentile} at half of its throughput`,
      other: 'the bare server at the same pace',
      unit: 'ms',
      measure: (fixtures) => latency(fixtures, percentile),
    }),
  ),
]
