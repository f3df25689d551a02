// What all that Adit does for a request costs: the same bytes from a server that does nothing else.
import type { Figure } from '../figure.ts'
import type { Workbench } from '../fixtures.ts'
import type { Ask } from '../load/jobs.ts'
import type { Served } from '../processes.ts'
import { compare, type Measured, measuredOf, type Sample } from '../rounds.ts'
import { answerTo, CONNECTIONS, getting, ownKey, reading } from '../scenarios.ts'
import { keysPlan } from '../seed/catalog.ts'

/** Node sets these itself. */
const BY_NODE = new Set(['date', 'connection', 'keep-alive'])

/** A bare server that sends what Adit answered. */
export async function startBare(bench: Workbench, ours: Served, ask: Ask): Promise<Served> {
  const { status, rawHeaders, body } = await answerTo(ours.url, ask)
  const names = rawHeaders.filter((_, index) => index % 2 === 0)
  const headers = Object.fromEntries(
    names.flatMap((name, index) =>
      BY_NODE.has(name.toLowerCase()) ? [] : [[name, rawHeaders[index * 2 + 1] as string]],
    ),
  )
  const date = names.some((name) => name.toLowerCase() === 'date')
  const keepAliveS = Number(/keep-alive,timeout=(\d+)/i.exec(rawHeaders.join(','))?.[1] ?? 5)
  const bare = await bench.peer('bare', { status, headers, body, date, keepAliveS })
  const sizes = [sizeOf(rawHeaders), sizeOf((await answerTo(bare.url, ask)).rawHeaders)]
  if (sizes[0] !== sizes[1]) bench.say(`the bare server's headers differ: ${sizes.join(' and ')} bytes`)
  return bare
}

const sizeOf = (rawHeaders: string[]) => rawHeaders.join('  ').length

export async function startBoth(bench: Workbench, path: string) {
  const ours = await bench.adit(await bench.sqlite('keys-1000', keysPlan(1_000)))
  const ask = reading(path, ownKey(bench))
  return { ask, ours, bare: await startBare(bench, ours, ask) }
}

async function measure(bench: Workbench, path: string) {
  const { ask, ours, bare } = await startBoth(bench, path)
  return compare(await getting(bench, ours, ask), await getting(bench, bare, ask))
}

/** Long enough that some dozens of requests are beyond the 99th percentile. */
const PACED_S = 2

type Latencies = Record<'p50' | 'p99', Measured>

/** At half of what Adit can take, which is less than half of what the bare server can. */
async function measureLatencies(bench: Workbench): Promise<Latencies> {
  const { ask, ours, bare } = await startBoth(bench, '/api/v1/workspace')
  await (await getting(bench, bare, ask))(-1)
  const atMost = await getting(bench, ours, ask)
  await atMost(-1)
  const { value: most } = await atMost(0)
  const perSecond = Math.floor(most / 2)
  const note = `at ${perSecond} requests a second`
  const tails = { ours: [] as Sample[], bare: [] as Sample[] }
  const side = (served: Served, tail: Sample[]) => async (round: number) => {
    const seconds = round < 0 ? 1 : PACED_S
    const pace = { url: served.url, connections: CONNECTIONS, request: ask, perSecond, seconds }
    const { p50, p99, busy } = await bench.load.pace(pace, served.pid)
    if (round >= 0) tail.push({ value: p99, busy })
    return { value: p50, busy }
  }
  const p50 = await compare(side(ours, tails.ours), side(bare, tails.bare))
  return { p50: { ...p50, note }, p99: { ...measuredOf(tails.ours, tails.bare), note } }
}

/** Both percentiles come out of one run. */
const latencies = new WeakMap<Workbench, Promise<Latencies>>()

async function latency(bench: Workbench, percentile: 'p50' | 'p99'): Promise<Measured> {
  const both = latencies.get(bench) ?? measureLatencies(bench)
  latencies.set(bench, both)
  return (await both)[percentile]
}

export const againstBare: Figure[] = [
  {
    name: 'workspace_vs_bare',
    ours: 'GET /workspace with a key, headers and log as shipped',
    other: 'the same bytes from a bare node:http server',
    unit: 'requests/s',
    target: { atLeast: 0.9 },
    measure: (bench) => measure(bench, '/api/v1/workspace'),
  },
  {
    name: 'usage_vs_bare',
    ours: 'GET /usage?days=365 with a key, a full year of data',
    other: 'the same bytes from a bare node:http server',
    unit: 'requests/s',
    target: { atLeast: 0.6 },
    measure: (bench) => measure(bench, '/api/v1/usage?days=365'),
  },
  ...(['p50', 'p99'] as const).map(
    (percentile): Figure => ({
      name: `latency_${percentile}`,
      ours: `GET /workspace, ${percentile} at half of its throughput`,
      other: 'the bare server at the same pace',
      unit: 'ms',
      measure: (bench) => latency(bench, percentile),
    }),
  ),
]
