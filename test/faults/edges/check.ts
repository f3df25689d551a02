// What must hold in a cluster of edges, whatever fails.
import type { EdgeCluster } from './deployment.ts'
import type { InjectedFault } from './injection.ts'
import type { Visit } from './visitors.ts'

/** The time without service for GETs after a fault. */
const RECOVERED_WITHIN_MS = 1_000
/** If the host took more than this, it is not the edges that took so long. */
const STOLEN_MAX = 0.1
/** A killed edge loses what it counted in its last second; its timer may be late on a busy machine. */
const LOST_MS = 1_000
const TIMER_DELAY_MS = 250

/** The longest a GET took beyond its local server, counted from the last fault during it. */
export function serviceMs({ startMs, endMs, delayMs }: Visit, faults: readonly InjectedFault[]): number {
  const during = faults.map((fault) => fault.startMs).filter((at) => at > startMs && at < endMs)
  return endMs - Math.max(startMs, ...during) - delayMs
}

export function checkVisits(visits: readonly Visit[], faults: readonly InjectedFault[]): string[] {
  const violations: string[] = []
  for (const visit of visits) {
    const { kind, tunnel, status, body, id, edges } = visit
    const ms = Math.round(serviceMs(visit, faults))
    const fault = faults.findLast(({ startMs }) => startMs < visit.endMs)
    const what = `${kind} ${tunnel.host} ${id} at ${edges.map(({ name }) => name)}: ${status} in ${ms} ms`
    const when = fault
      ? `${Math.round(visit.startMs - fault.startMs)} ms after: ${fault.kind} (${fault.target})`
      : 'before faults'
    const report = (violation: string) => violations.push(`${violation}: ${what}, ${when}`)
    if (status === 200 && body !== tunnel.host) report(`response of ${body}`)
    if (kind === 'another group' && status !== undefined && status !== 404) report('reached another group')
    if (kind === 'without password' && status !== undefined && status !== 401) report('password not required')
    if (kind === 'POST' && (tunnel.received.get(id) ?? 0) > 1) report('sent twice')
    if (kind === 'GET' && status !== 200) report('failed')
    if (isSlow(visit, faults) && visit.stolen <= STOLEN_MAX) report('took too long')
  }
  return violations
}

/** An edge compares a password with the hash of each edge that it forwards to, once, and that takes long. */
const isSlow = (visit: Visit, faults: readonly InjectedFault[]) =>
  visit.kind === 'GET' && !visit.tunnel.hasPassword && serviceMs(visit, faults) > RECOVERED_WITHIN_MS

/** GETs whose time says nothing, because the host of this virtual machine took its processors. */
export const countDisturbed = (visits: readonly Visit[], faults: readonly InjectedFault[]) =>
  visits.filter((visit) => isSlow(visit, faults) && visit.stolen > STOLEN_MAX).length

interface Usage {
  readonly requests: bigint
  readonly peakTunnels: bigint
}

/** Requests are counted at the edge where they arrive, at most once for each that was sent. */
export function checkUsage(
  usage: ReadonlyMap<string, Usage>,
  { tunnels, checks }: EdgeCluster,
  visits: readonly Visit[],
  faults: readonly InjectedFault[],
): string[] {
  const violations: string[] = []
  for (const [workspace, { requests, peakTunnels }] of usage) {
    const own = visits.filter(({ tunnel }) => tunnel.workspace === workspace)
    const sent = own.reduce((sum, { edges }) => sum + edges.length, 0) + (checks.get(workspace) ?? 0)
    const served = own.filter(({ status }) => status === 200)
    const mayBeLost = ({ endMs, edges }: Visit) =>
      faults.some(
        ({ killed, startMs }) =>
          killed && killed === edges.at(-1) && endMs <= startMs && endMs > startMs - LOST_MS - TIMER_DELAY_MS,
      )
    const least = served.filter((visit) => !mayBeLost(visit)).length
    if (requests > BigInt(sent)) violations.push(`${workspace}: ${requests} counted, ${sent} sent`)
    if (requests < BigInt(least)) violations.push(`${workspace}: ${requests} counted, ${least} served`)
    const open = tunnels.filter((tunnel) => tunnel.workspace === workspace).length
    if (peakTunnels !== BigInt(open)) violations.push(`${workspace}: peak ${peakTunnels} of ${open} tunnels`)
  }
  return violations
}
