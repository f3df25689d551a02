// Names that clients of this edge have, or had until recently: they can open them again with the same key
// while the control plane is unreachable. The first sync after the outage settles who keeps the name.
import type { VerifyResult } from '../../edge-sdk/index.ts'
import type { AccessRules } from '../access/access-control.ts'

/** How long a name stays available to its key after the last client has left. */
const RETENTION_MS = 600_000
const CLOSED_MAX = 10_000

export interface RecentName {
  /** What the control plane said about the key last. */
  readonly key: VerifyResult & { valid: true }
  rules: AccessRules | null
  /** The port of a TCP tunnel. */
  readonly port?: number | undefined
}

interface OpenName {
  readonly recent: RecentName
  readonly clients: number
}

export class RecentNames {
  readonly #clock: () => number
  /** All entries by workspace and name, then by id: a sync may change the rules of many names. */
  readonly #byName = new Map<string, Map<string, RecentName>>()
  /** Names with open tunnels, by `entryId`. */
  readonly #open = new Map<string, OpenName>()
  /** Names without, by `entryId`; the least recently closed is the first. */
  readonly #closed = new Map<string, RecentName & { readonly until: number }>()

  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock
  }

  opened(key: string, name: string, recent: RecentName): void {
    const id = entryId(key, name)
    const clients = this.#open.get(id)?.clients ?? 0
    this.#evict(id)
    this.#open.set(id, { recent, clients: clients + 1 })
    this.#index(id, recent)
  }

  /** `rules` are undefined if the name is not kept. */
  closed(key: string, name: string, rules: AccessRules | null | undefined): void {
    const id = entryId(key, name)
    const open = this.#open.get(id)
    if (!open) return
    if (open.clients > 1) return void this.#open.set(id, { ...open, clients: open.clients - 1 })
    this.#evict(id)
    if (rules === undefined) return
    const closed = { ...open.recent, rules, until: this.#clock() + RETENTION_MS }
    this.#closed.set(id, closed)
    this.#index(id, closed)
    const [oldest = ''] = this.#closed.keys()
    if (this.#closed.size > CLOSED_MAX) this.#evict(oldest)
  }

  find(key: string, name: string): RecentName | undefined {
    const id = entryId(key, name)
    const closed = this.#closed.get(id)
    return this.#open.get(id)?.recent ?? (closed && closed.until > this.#clock() ? closed : undefined)
  }

  setRules(workspace: string, name: string, rules: AccessRules | null): void {
    for (const recent of this.#byName.get(`${workspace} ${name}`)?.values() ?? []) recent.rules = rules
  }

  /** Called when keys become invalid. The registry closes their open tunnels. */
  removeKeys(matches: (key: RecentName['key']) => boolean): void {
    for (const [id, { key }] of this.#closed) if (matches(key)) this.#evict(id)
  }

  /** Called when revocations may have been missed. */
  removeClosed(): void {
    for (const id of this.#closed.keys()) this.#evict(id)
  }

  #index(id: string, recent: RecentName): void {
    const entries = this.#byName.get(nameKey(id, recent)) ?? new Map<string, RecentName>()
    this.#byName.set(nameKey(id, recent), entries.set(id, recent))
  }

  #evict(id: string): void {
    const recent = this.#open.get(id)?.recent ?? this.#closed.get(id)
    if (!recent) return
    this.#open.delete(id)
    this.#closed.delete(id)
    const entries = this.#byName.get(nameKey(id, recent))
    entries?.delete(id)
    if (entries?.size === 0) this.#byName.delete(nameKey(id, recent))
  }
}

/** Unambiguous, because neither part has spaces. */
const entryId = (key: string, name: string) => `${key} ${name}`

const nameKey = (id: string, { key }: RecentName) => `${key.workspace.slug} ${id.slice(id.indexOf(' ') + 1)}`
