// Edges that count on whatever happens, and report their totals: once, twice, out of order, to two nodes at once. The sum
// of what they counted is the truth.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../support/random.ts'
import { type Calls, type Edge, insist } from './calls.ts'
import type { Used } from './history.ts'
import type { Node } from './nodes.ts'
import type { Crowd } from './workers.ts'

interface Report {
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

export interface ReportingOptions {
  nodes: readonly Node[]
  calls: Calls
  crowd: Crowd
  edges: readonly Edge[]
  workspace: string
  random: Random
}

export function startReporting({ nodes, calls, crowd, edges, workspace, random: root }: ReportingOptions) {
  // The day of the beginning, even if midnight comes: two days are asked for.
  const day = new Date().toISOString().slice(0, 10)
  /** The last report of each epoch. */
  const last = new Map<string, { edge: Edge; report: Report; total: Used }>()

  edges.forEach((edge, index) => {
    const random = root.fork(`edge-${index}`)
    let epoch = ''
    let total = { requests: 0, bytesIn: 0, bytesOut: 0, events: 0 }
    let sent: Report[] = []
    crowd.repeats(async (turn) => {
      // It starts anew now and then, and counts from nothing.
      if (turn === 1 || random.chance(0.03)) {
        epoch = `edge-${index}-run-${turn}`
        total = { requests: 0, bytesIn: 0, bytesOut: 0, events: 0 }
        sent = []
      }
      total.requests += random.whole(1, 20)
      total.bytesIn += random.whole(0, 100_000)
      total.bytesOut += random.whole(0, 2 ** 33)
      total.events += random.whole(0, 3)
      const report: Report = { epoch, counters: [{ workspace, day, ...total }] }
      last.set(epoch, {
        edge,
        report,
        total: { bytes: total.bytesIn + total.bytesOut, events: total.events },
      })
      sent.push(report)
      const places = random.chance(0.2) ? random.shuffled(nodes).slice(0, 2) : [random.pick(nodes)]
      const patienceMs = random.chance(0.05) ? random.between(1, 60) : undefined
      // One that is late is overtaken by the next ones.
      if (random.chance(0.2)) crowd.goes(calls.report(random.pick(nodes), edge, random.pick(sent)))
      await Promise.all(places.map((node) => calls.report(node, edge, report, patienceMs)))
      await sleep(random.between(30, 250))
    })
  })

  return {
    /** Sends the last report of each epoch once more, and tells what all of them come to. */
    async settle(): Promise<Used> {
      const counted = { bytes: 0, events: 0 }
      for (const { edge, report, total } of last.values()) {
        await insist(() => calls.report(root.pick(nodes), edge, report))
        counted.bytes += total.bytes
        counted.events += total.events
      }
      return counted
    },
  }
}
