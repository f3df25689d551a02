// What a worker has counted and not yet told its primary. Each notice has the difference since the last one:
// the channel loses and repeats none, so nothing counts twice, and a worker that is killed loses what it
// counted since.
import type { Meter, Transfer, TunnelUsage } from '../../edge-sdk/index.ts'
import type { WorkerUsage } from './messages.ts'

const INTERVAL_MS = 100
/** Totals of tunnels are only listed, so they are sent less often. */
const TOTALS_INTERVALS = 10

export class UsageBuffer {
  readonly meter: Meter
  readonly #send: (usage: WorkerUsage) => Promise<void>
  #transfers = new Map<string, Required<Transfer>>()
  #rejected = new Map<string, number>()
  readonly #clients = new Map<string, { usage(): TunnelUsage; sent: string }>()
  readonly #timer: NodeJS.Timeout
  #intervals = 0

  constructor(send: (usage: WorkerUsage) => Promise<void>) {
    this.#send = send
    this.#timer = setInterval(() => void this.#flush(), INTERVAL_MS).unref()
    this.meter = {
      // Whether a tunnel is open is counted by the primary: it may have clients at several workers.
      opened() {},
      closed() {},
      count() {},
      rejected: (workspace) => void this.#rejected.set(workspace, (this.#rejected.get(workspace) ?? 0) + 1),
      transferred: (workspace, { requests = 0, bytesIn = 0, bytesOut = 0 }) => {
        const totals = this.#transfers.get(workspace)
        if (!totals) return void this.#transfers.set(workspace, { requests, bytesIn, bytesOut })
        totals.requests += requests
        totals.bytesIn += bytesIn
        totals.bytesOut += bytesOut
      },
      spoolBytes: () => 0,
      setQuota() {},
      stop: async () => {
        clearInterval(this.#timer)
        await this.#flush()
      },
    }
  }

  /** A client is connected. */
  add(id: string, usage: () => TunnelUsage): void {
    this.#clients.set(id, { usage, sent: '' })
  }

  remove(id: string): void {
    this.#clients.delete(id)
  }

  async #flush(): Promise<void> {
    this.#intervals += 1
    const totals = this.#intervals % TOTALS_INTERVALS === 0 ? this.#changedTotals() : []
    if (this.#transfers.size + this.#rejected.size + totals.length === 0) return
    const transfers = Array.from(
      this.#transfers,
      ([workspace, { requests, bytesIn, bytesOut }]) => [workspace, requests, bytesIn, bytesOut] as const,
    )
    const rejected = [...this.#rejected]
    this.#transfers = new Map()
    this.#rejected = new Map()
    await this.#send({ transfers, rejected, totals })
  }

  #changedTotals(): [string, TunnelUsage][] {
    const changed: [string, TunnelUsage][] = []
    for (const [id, client] of this.#clients) {
      const usage = client.usage()
      const text = JSON.stringify(usage)
      if (text === client.sent) continue
      client.sent = text
      changed.push([id, usage])
    }
    return changed
  }
}
