// Whether this edge counts a tunnel in its usage reports. If clients of a tunnel are connected to several
// edges, exactly one of these counts it, so that the control plane can add their reports.
import type { Meter } from '../../edge-sdk/index.ts'

export type TunnelMeter = Pick<Meter, 'opened' | 'closed' | 'count'>

/** The decision of the control plane. Without `counts`, an edge that opens the tunnel counts it. */
export interface CountRule {
  readonly counts?: boolean | undefined
  /** A time; without one, it counts at once. */
  readonly countsFrom?: string | undefined
}

export class TunnelCount {
  readonly #meter: TunnelMeter | undefined
  readonly #workspace: string
  /** Whether opening and closing are events of this edge. */
  #reportsEvents = false
  #isCounted = false
  #timer: NodeJS.Timeout | undefined

  constructor(meter: TunnelMeter | undefined, workspace: string) {
    this.#meter = meter
    this.#workspace = workspace
  }

  /** The tunnel was opened. */
  open({ counts = true, countsFrom }: CountRule): void {
    this.#reportsEvents = counts
    this.#isCounted = counts && delayUntil(countsFrom) === 0
    if (counts) this.#meter?.opened(this.#workspace, this.#isCounted)
    this.set({ counts, countsFrom })
  }

  /** Without `counts`, nothing changes. */
  set({ counts, countsFrom }: CountRule): void {
    if (counts === undefined) return
    clearTimeout(this.#timer)
    const delayMs = delayUntil(countsFrom)
    // Checks again, because a timer may fire a millisecond early, in a minute that another edge counts.
    if (counts && delayMs > 0)
      this.#timer = setTimeout(() => this.set({ counts, countsFrom }), delayMs).unref()
    else this.#count(counts)
  }

  /** The tunnel was closed. */
  close(): void {
    clearTimeout(this.#timer)
    if (this.#reportsEvents) this.#meter?.closed(this.#workspace, this.#isCounted)
    else this.#count(false)
  }

  #count(isCounted: boolean): void {
    if (isCounted === this.#isCounted) return
    this.#isCounted = isCounted
    this.#meter?.count(this.#workspace, isCounted)
  }
}

const delayUntil = (time: string | undefined) =>
  time === undefined ? 0 : Math.max(0, Date.parse(time) - Date.now())
