// Several processes behind one port, compared with one.
import type { Figure } from '../figure.ts'
import type { Fixtures } from '../fixtures.ts'
import type { Served } from '../processes.ts'
import { childrenOf } from '../processes.ts'
import { compare, type Measured, median, type Scenario, untilOf } from '../rounds.ts'
import { CONNECTIONS, ownKey, reading, requestOnce } from '../scenarios.ts'
import { keysPlan } from '../seed/catalog.ts'

/** The processor time of a request, in microseconds; adds the throughput to `rates`. */
async function costing(fixtures: Fixtures, served: Served, rates: number[]): Promise<Scenario> {
  const spec = reading('/api/v1/workspace', ownKey(fixtures))
  const { body } = await requestOnce(served.url, spec)
  return async (round) => {
    const pids = [served.pid, ...childrenOf(served.pid)]
    const loaded = await fixtures.load.run(
      {
        url: served.url,
        connections: CONNECTIONS,
        draw: { kind: 'requests', requests: [spec], each: 'all' },
        until: untilOf(round),
        expect: { body },
      },
      ...pids,
    )
    if (loaded.cpuS === undefined) throw new Error('no /proc to read processor times from')
    if (round >= 0) rates.push(loaded.perSecond)
    return { value: (loaded.cpuS / loaded.completed) * 1e6, busy: loaded.busy }
  }
}

async function againstOne(fixtures: Fixtures): Promise<Measured> {
  const database = await fixtures.sqlite('keys-1000', keysPlan(1_000))
  const rates = { two: [] as number[], one: [] as number[] }
  const two = await costing(fixtures, await fixtures.adit(database, { ADIT_WORKERS: '2' }), rates.two)
  const one = await costing(fixtures, await fixtures.adit(database), rates.one)
  const measured = await compare(two, one)
  const [twoRate, oneRate] = [Math.round(median(rates.two)), Math.round(median(rates.one))]
  return { ...measured, note: `${twoRate} to ${oneRate} requests/s` }
}

export const workers: Figure[] = [
  {
    name: 'workers_2',
    ours: 'processor time of GET /workspace with two workers, SQLite',
    other: 'with one process',
    unit: 'µs',
    target: { atMost: 1.1 },
    measure: againstOne,
  },
]
