// Entries that many owners share, such as slots or a queue. When there is no room, a new entry displaces one
// of the owner that has the most, so that no owner with many keeps out one with few.

/**
 * Adding, deleting and displacing the oldest entry take constant time. Displacing the newest one reads the
 * entries of its owner.
 */
export class SharedSlots<T> {
  /** Entries of each owner, the oldest first. */
  readonly #byOwner = new Map<string, Set<T>>()
  /** Owners by the number of their entries. */
  readonly #ownersByCount = new Map<number, Set<string>>()
  #maxCount = 0
  #size = 0

  get size(): number {
    return this.#size
  }

  count(owner: string): number {
    return this.#byOwner.get(owner)?.size ?? 0
  }

  owners(): Iterable<string> {
    return this.#byOwner.keys()
  }

  /** The entries of one owner, or of all. */
  entries(owner?: string): T[] {
    if (owner !== undefined) return [...(this.#byOwner.get(owner) ?? [])]
    return [...this.#byOwner.values()].flatMap((entries) => [...entries])
  }

  oldest(owner: string): T | undefined {
    return this.#byOwner.get(owner)?.values().next().value
  }

  /** Every owner that is not listed can displace an entry. Undefined if no owner can. */
  ownersUnableToDisplace(): string[] | undefined {
    if (this.#maxCount < 2) return undefined
    return [this.#maxCount, this.#maxCount - 1].flatMap((count) => [
      ...(this.#ownersByCount.get(count) ?? []),
    ])
  }

  add(owner: string, entry: T): void {
    const entries = this.#byOwner.get(owner) ?? new Set()
    if (entries.has(entry)) throw new Error('The owner already has this entry.')
    this.#byOwner.set(owner, entries.add(entry))
    this.#size += 1
    this.#move(owner, entries.size - 1, entries.size)
    this.#maxCount = Math.max(this.#maxCount, entries.size)
  }

  /** False if there is no such entry. */
  delete(owner: string, entry: T): boolean {
    const entries = this.#byOwner.get(owner)
    if (!entries?.delete(entry)) return false
    if (entries.size === 0) this.#byOwner.delete(owner)
    this.#size -= 1
    this.#move(owner, entries.size + 1, entries.size)
    // The owner was one of the heaviest, and now has one less.
    if (!this.#ownersByCount.has(this.#maxCount)) this.#maxCount = entries.size
    return true
  }

  /**
   * Deletes an entry of the heaviest owner to make room for one of `owner`. Undefined unless the heaviest has
   * at least two more than `owner`: otherwise the two owners would keep displacing each other.
   */
  displace(owner: string, which: 'oldest' | 'newest'): T | undefined {
    if (this.#maxCount < this.count(owner) + 2) return undefined
    const [heaviest] = this.#ownersByCount.get(this.#maxCount) as Set<string>
    const entries = this.#byOwner.get(heaviest as string) as Set<T>
    const entry = which === 'oldest' ? entries.values().next().value : [...entries].at(-1)
    this.delete(heaviest as string, entry as T)
    return entry
  }

  #move(owner: string, from: number, to: number): void {
    const before = this.#ownersByCount.get(from)
    before?.delete(owner)
    if (before?.size === 0) this.#ownersByCount.delete(from)
    if (to > 0) this.#ownersByCount.set(to, (this.#ownersByCount.get(to) ?? new Set()).add(owner))
  }
}

interface SlotLimits {
  readonly perOwner: number
  readonly total: number
}

export interface Slot {
  /** Aborted if the slot has to make room for one of another owner. */
  readonly displaced: AbortSignal
  release(): void
}

/** Slots with a limit for each owner, and in total. */
export class LimitedSlots {
  readonly #limits: SlotLimits
  readonly #slots = new SharedSlots<AbortController>()

  constructor(limits: SlotLimits) {
    this.#limits = limits
  }

  /** Returns the limit that is reached if there is no slot. */
  acquire(owner: string): Slot | keyof SlotLimits {
    if (this.#slots.count(owner) >= this.#limits.perOwner) return 'perOwner'
    if (this.#slots.size >= this.#limits.total) {
      const displaced = this.#slots.displace(owner, 'oldest')
      if (!displaced) return 'total'
      displaced.abort()
    }
    const slot = new AbortController()
    this.#slots.add(owner, slot)
    return { displaced: slot.signal, release: () => void this.#slots.delete(owner, slot) }
  }
}
