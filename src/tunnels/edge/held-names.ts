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
  readonly #open = new Map<string, OpenName>()
  /** The least recently closed first. */
  readonly #closed = new Map<string, HeldName & { readonly until: number }>()

  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock
  }

  opened(key: string, name: string, held: HeldName): void {
    const id = idOf(key, name)
    this.#closed.delete(id)
    this.#open.set(id, { held, clients: (this.#open.get(id)?.clients ?? 0) + 1 })
  }

  /** `rules` are undefined if the name is not held any longer. */
  closed(key: string, name: string, rules: AccessRules | null | undefined): void {
    const id = idOf(key, name)
    const open = this.#open.get(id)
    if (!open) return
    if (open.clients > 1) return void this.#open.set(id, { ...open, clients: open.clients - 1 })
    this.#open.delete(id)
    if (rules === undefined) return
    this.#closed.set(id, { ...open.held, rules, until: this.#clock() + HELD_MS })
    const [oldest = ''] = this.#closed.keys()
    if (this.#closed.size > CLOSED_MAX) this.#closed.delete(oldest)
  }

  find(key: string, name: string): HeldName | undefined {
    const id = idOf(key, name)
    const closed = this.#closed.get(id)
    return this.#open.get(id)?.held ?? (closed && closed.until > this.#clock() ? closed : undefined)
  }

  /** The rules of a name have changed. */
  setRules(workspace: string, name: string, rules: AccessRules | null): void {
    const isOfName = (id: string, { key }: HeldName) =>
      key.workspace.slug === workspace && id.endsWith(` ${name}`)
    for (const [id, { held }] of this.#open) if (isOfName(id, held)) held.rules = rules
    for (const [id, held] of this.#closed) if (isOfName(id, held)) held.rules = rules
  }

  /** The key was revoked. Its open tunnels are closed by the registry. */
  forgetKey(keyId: string): void {
    for (const [id, { key }] of this.#closed) if (key.keyId === keyId) this.#closed.delete(id)
  }

  /** Revocations may have been missed. */
  forgetClosed(): void {
    this.#closed.clear()
  }
}

/** Neither has spaces. */
const idOf = (key: string, name: string) => `${key} ${name}`
