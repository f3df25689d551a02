// Names that clients of this edge have, or had until recently: they can open them again with the same key while
// the control plane is unreachable. The first sync after the outage settles who keeps the name.
import type { VerifyResult } from '../../edge-sdk/index.ts'
import type { AccessRules } from './access/access-control.ts'

/** How long after its last client a name is held. */
const HELD_MS = 600_000
const CLOSED_MAX = 10_000

export interface HeldName {
  /** What the control plane said about the key last. */
  readonly key: VerifyResult & { valid: true }
  rules: AccessRules | null
}

interface OpenName {
  readonly held: HeldName
  readonly clients: number
}

export class HeldNames {
  readonly #clock: () => number
  /** Of all below, by workspace and name, then by id. A sync may change the rules of many names. */
  readonly #byName = new Map<string, Map<string, HeldName>>()
  /** By `idOf`. */
  readonly #open = new Map<string, OpenName>()
  /** The least recently closed first. */
  readonly #closed = new Map<string, HeldName & { readonly until: number }>()

  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock
  }

  opened(key: string, name: string, held: HeldName): void {
    const id = idOf(key, name)
    const clients = this.#open.get(id)?.clients ?? 0
    this.#forget(id)
    this.#open.set(id, { held, clients: clients + 1 })
    this.#index(id, held)
  }

  /** `rules` are undefined if the name is not held any longer. */
  closed(key: string, name: string, rules: AccessRules | null | undefined): void {
    const id = idOf(key, name)
    const open = this.#open.get(id)
    if (!open) return
    if (open.clients > 1) return void this.#open.set(id, { ...open, clients: open.clients - 1 })
    this.#forget(id)
    if (rules === undefined) return
    const closed = { ...open.held, rules, until: this.#clock() + HELD_MS }
    this.#closed.set(id, closed)
    this.#index(id, closed)
    const [oldest = ''] = this.#closed.keys()
    if (this.#closed.size > CLOSED_MAX) this.#forget(oldest)
  }

  find(key: string, name: string): HeldName | undefined {
    const id = idOf(key, name)
    const closed = this.#closed.get(id)
    return this.#open.get(id)?.held ?? (closed && closed.until > this.#clock() ? closed : undefined)
  }

  /** The rules of a name have changed. */
  setRules(workspace: string, name: string, rules: AccessRules | null): void {
    for (const held of this.#byName.get(`${workspace} ${name}`)?.values() ?? []) held.rules = rules
  }

  /** The key was revoked. Its open tunnels are closed by the registry. */
  forgetKey(keyId: string): void {
    for (const [id, { key }] of this.#closed) if (key.keyId === keyId) this.#forget(id)
  }

  /** Revocations may have been missed. */
  forgetClosed(): void {
    for (const id of this.#closed.keys()) this.#forget(id)
  }

  #index(id: string, held: HeldName): void {
    const ofName = this.#byName.get(nameOf(id, held)) ?? new Map<string, HeldName>()
    this.#byName.set(nameOf(id, held), ofName.set(id, held))
  }

  #forget(id: string): void {
    const held = this.#open.get(id)?.held ?? this.#closed.get(id)
    if (!held) return
    this.#open.delete(id)
    this.#closed.delete(id)
    const ofName = this.#byName.get(nameOf(id, held))
    ofName?.delete(id)
    if (ofName?.size === 0) this.#byName.delete(nameOf(id, held))
  }
}

/** Neither has spaces. */
const idOf = (key: string, name: string) => `${key} ${name}`

const nameOf = (id: string, { key }: HeldName) => `${key.workspace.slug} ${id.slice(id.indexOf(' ') + 1)}`
