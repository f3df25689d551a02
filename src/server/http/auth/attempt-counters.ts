// Counts attempts by name in a fixed amount of memory: a count-min sketch for each kind of limit.
//
// A name has two cells in the table of its kind, chosen by a keyed hash, and its count is the smaller one.
// Nothing is evicted, so a flood of names cannot reset a count, and a flood of one kind does not affect other
// kinds. A name that was never counted is limited by mistake only if both of its cells are full. With n
// attempts of one kind within a window, each under a different name, a cell holds n / 131,072 on average. For
// the lowest limit, 3 emails to an address, this affects one name in 10^13 after the 1,280 requests that one
// IPv6 /32 is allowed, one in 70,000 after 40,000 requests, and one in 170 after 128,000, which takes 6,400
// IPv4 addresses. A limit of 10 is then reached for less than one in 10^13.
//
// Names that share a cell also share its window, which begins with the first of them.
import { createHmac, randomBytes } from 'node:crypto'

export const WINDOW_MS = 15 * 60 * 1000
const CELLS_PER_HASH = 2 ** 17

/** Each has its own table of 5 MiB, allocated on first use. */
export type Kind =
  | 'known-browser'
  | 'sign-in-account'
  | 'signed-in-account'
  | 'sign-in-account-from-network'
  | 'own-account'
  | 'mail-account'
  | 'user-code-account'
  | `${'sign-in' | 'code' | 'sso' | 'sso-return' | 'mail' | 'device' | 'user-code'}-network`

const createTable = () => ({
  counts: new Uint32Array(2 * CELLS_PER_HASH),
  untils: new Float64Array(2 * CELLS_PER_HASH),
  nextAts: new Float64Array(2 * CELLS_PER_HASH),
})

type Table = ReturnType<typeof createTable>

export class Cell {
  readonly #table: Table
  readonly #index: number

  constructor(table: Table, index: number) {
    this.#table = table
    this.#index = index
  }

  get count(): number {
    return this.#table.counts[this.#index] as number
  }
  set count(value: number) {
    this.#table.counts[this.#index] = value
  }

  /** When the window ends. */
  get until(): number {
    return this.#table.untils[this.#index] as number
  }
  set until(value: number) {
    this.#table.untils[this.#index] = value
  }

  /** When the next attempt is allowed, if attempts are delayed. */
  get nextAt(): number {
    return this.#table.nextAts[this.#index] as number
  }
  set nextAt(value: number) {
    this.#table.nextAts[this.#index] = value
  }
}

export function createAttemptCounters(clock: () => number) {
  const key = randomBytes(32)
  const tables = new Map<Kind, Table>()

  /** The two cells of a name, reset if their window has ended. */
  return function cellsOf({ kind, name }: { kind: Kind; name: string }): Cell[] {
    const table = tables.get(kind) ?? createTable()
    tables.set(kind, table)
    const hash = createHmac('sha256', key).update(name).digest()
    const now = clock()
    return [0, 1].map((row) => {
      const cell = new Cell(table, row * CELLS_PER_HASH + (hash.readUInt32BE(4 * row) % CELLS_PER_HASH))
      // Also if the clock was set back after the window began.
      if (cell.until <= now || cell.until > now + WINDOW_MS) {
        cell.count = 0
        cell.until = now + WINDOW_MS
        cell.nextAt = 0
      }
      return cell
    })
  }
}
