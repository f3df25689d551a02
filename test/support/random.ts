// Seeded random numbers: every choice of a run is reproducible. The timing of the processes is not.

export interface Random {
  /** From `min` up to, but not including, `max`. */
  between(min: number, max: number): number
  whole(min: number, max: number): number
  chance(probability: number): boolean
  pick<T>(list: readonly T[]): T
  shuffled<T>(list: readonly T[]): T[]
  /** A generator for one of several concurrent actors: interleaving does not change its choices. */
  fork(name: string): Random
}

export function createRandom(seed: string): Random {
  let state = hash(seed)

  /** Mulberry32. */
  function next(): number {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  const between = (min: number, max: number) => min + next() * (max - min)
  const whole = (min: number, max: number) => Math.floor(between(min, max))
  return {
    between,
    whole,
    chance: (probability) => next() < probability,
    pick(list) {
      if (list.length === 0) throw new Error('The list is empty.')
      return list[whole(0, list.length)] as (typeof list)[number]
    },
    shuffled: (list) =>
      list
        .map((item) => ({ item, order: next() }))
        .sort((a, b) => a.order - b.order)
        .map(({ item }) => item),
    fork: (name) => createRandom(`${seed}/${name}`),
  }
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x01000193)
  return value
}
