// A simulated edge that reports its tunnels by the protocol, over a network that loses, repeats and delays
// what the test says.
import type { ReportedTunnel } from '../../../src/contract/edge/tunnel-fields.ts'
import type { SyncRequest, TunnelClaim } from '../../../src/contract/edge/tunnels.ts'
import type { Services } from '../../../src/server/domain/context.ts'
import { claimTunnels } from '../../../src/server/domain/tunnels/claims.ts'
import { syncTunnels } from '../../../src/server/domain/tunnels/sync.ts'
import { newSession, tunnelId } from './open-tunnels.ts'

/** What happens to a request: also `unanswered`, which arrives, but its response does not. */
export type Fate = 'delivered' | 'repeated' | 'unanswered' | 'lost' | 'delayed'

type Message = () => Promise<unknown>

export class SimulatedEdge {
  readonly id: string
  /** Open tunnels by id, with the sync that has their last change. */
  readonly tunnels = new Map<string, { tunnel: ReportedTunnel; tick: number }>()
  /** Every request that was sent, in order. */
  readonly sent: Message[] = []
  readonly #delayed: Message[] = []
  readonly #services: Services
  readonly #template: ReportedTunnel
  #closed = new Map<string, number>()
  #session = newSession()
  #next = 1
  #acknowledged = 0

  constructor(id: string, services: Services, template: ReportedTunnel) {
    this.id = id
    this.#services = services
    this.#template = template
  }

  /** It has verified the key of all its tunnels. */
  get #edge() {
    return { id: this.id, group: 'default', verifiedKeys: new Set([this.#template.keyId]) }
  }

  async open(name: string, fate: Fate): Promise<void> {
    if ([...this.tunnels.values()].some(({ tunnel }) => tunnel.name === name)) return
    const tunnel = { ...this.#template, id: tunnelId(), name }
    this.tunnels.set(tunnel.id, { tunnel, tick: this.#next })
    const { requests, bytesIn, bytesOut, streams, ...claimed } = tunnel
    const body: TunnelClaim = { session: this.#session, sequence: this.#next, grants: [], tunnels: [claimed] }
    const result = await this.#send(
      () => claimTunnels(this.#services, this.#edge, body).catch(() => undefined),
      fate,
    )
    if (!result?.results[0]?.granted) this.close(tunnel.id)
  }

  close(id: string): void {
    if (this.tunnels.delete(id)) this.#closed.set(id, this.#next)
  }

  carry(id: string): void {
    const open = this.tunnels.get(id)
    if (!open) return
    open.tunnel = { ...open.tunnel, requests: open.tunnel.requests + 1 }
    open.tick = this.#next
  }

  /** True if the response arrived, and nothing is left to do. */
  async sync(fate: Fate): Promise<boolean> {
    const previous = this.#acknowledged
    const sequence = this.#next++
    const body: SyncRequest = {
      session: this.#session,
      sequence,
      previous,
      version: 'adit/0.1.0',
      startedAt: '2026-11-15T08:00:00.000Z',
      load: { tunnels: this.tunnels.size, streams: 0 },
      changed: [...this.tunnels.values()].flatMap(({ tunnel, tick }) => (tick > previous ? [tunnel] : [])),
      closed: [...this.#closed].flatMap(([id, tick]) => (tick > previous ? [id] : [])),
    }
    const result = await this.#send(() => syncTunnels(this.#services, this.#edge, body), fate)
    if (!result) return false
    this.#acknowledged = result.resync ? 0 : sequence
    for (const { id } of result.close) this.close(id)
    return !result.resync && result.close.length === 0
  }

  /** Killed and started again. */
  restart(): void {
    this.tunnels.clear()
    this.#closed = new Map()
    this.#session = newSession()
    this.#next = 1
    this.#acknowledged = 0
  }

  async deliverDelayed(): Promise<void> {
    await this.#delayed.shift()?.()
  }

  async #send<T>(message: () => Promise<T>, fate: Fate): Promise<T | undefined> {
    this.sent.push(message)
    if (fate === 'lost') return undefined
    if (fate === 'delayed') {
      this.#delayed.push(message)
      return undefined
    }
    const result = await message()
    if (fate === 'repeated') await message()
    return fate === 'unanswered' ? undefined : result
  }
}
