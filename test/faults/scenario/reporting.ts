// Edges that count usage throughout and report their totals: once, twice, out of order, to two nodes
// concurrently. The server must end up with the sum of what they counted.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../support/random.ts'
import type { Used } from '../checker/history.ts'
import type { Node } from '../nodes.ts'
import { type Calls, type Edge, retryUntilResponse } from './calls.ts'
import type { Workers } from './workers.ts'

interface ReportBody {
  epoch: string
  counters: {
    workspace: string
    day: string
    requests: number
    bytesIn: number
    bytesOut: number
    events: number
  }[]
}

interface ReportingOptions {
  nodes: readonly Node[]
  calls: Calls
  workers: Workers
  edges: readonly Edge[]
  workspace: string
  random: Random
}

export function startReporting({ nodes, calls, workers, edges, workspace, random: root }: ReportingOptions) {
  // The day of the start, even past midnight: usage of two days is read.
  const day = new Date().toISOString().slice(0, 10)
  /** The last report of each epoch. */
  const last = new Map<string, { edge: Edge; report: ReportBody; total: Used }>()

  edges.forEach((edge, index) => {
    const random = root.fork(`edge-${index}`)
    let epoch = ''
    let total = { requests: 0, bytesIn: 0, bytesOut: 0, events: 0 }
    let sent: ReportBody[] = []
    workers.loop(async (iteration) => {
      // A restart: a new epoch, counted from zero.
      if (iteration === 1 || random.chance(0.03)) {
        epoch = `edge-${index}-run-${iteration}`
        total = { requests: 0, bytesIn: 0, bytesOut: 0, events: 0 }
        sent = []
      }
      total.requests += random.whole(1, 20)
      total.bytesIn += random.whole(0, 100_000)
      total.bytesOut += random.whole(0, 2 ** 33)
      total.events += random.whole(0, 3)
      const report: ReportBody = { epoch, counters: [{ workspace, day, ...total }] }
      last.set(epoch, {
        edge,
        report,
        total: { bytes: total.bytesIn + total.bytesOut, events: total.events },
      })
      sent.push(report)
      const targets = random.chance(0.2) ? random.shuffled(nodes).slice(0, 2) : [random.pick(nodes)]
      const timeoutMs = random.chance(0.05) ? random.between(1, 60) : undefined
      // An earlier report again, which later ones may overtake.
      if (random.chance(0.2)) workers.run(calls.report(random.pick(nodes), edge, random.pick(sent)))
      await Promise.all(targets.map((node) => calls.report(node, edge, report, timeoutMs)))
      await sleep(random.between(30, 250))
    })
  })

  return {
    /** Sends the last report of each epoch once more, and returns the sum of all. */
    async settle(): Promise<Used> {
      const counted = { bytes: 0, events: 0 }
      for (const { edge, report, total } of last.values()) {
        await retryUntilResponse(() => calls.report(root.pick(nodes), edge, report))
        counted.bytes += total.bytes
        counted.events += total.events
      }
      return counted
    },
  }
}
