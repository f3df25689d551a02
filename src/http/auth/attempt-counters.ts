// Counts attempts by name in memory of a fixed size: a count-min sketch for each kind of limit.
//
// A name has two cells in the table of its kind, by a hash with a secret key, and its count is the smaller one. Nothing is
// evicted, so no flood of names resets a count; and a flood of one kind leaves the other kinds alone. A name that was never
// counted is limited by mistake only if both of its cells are full. With n attempts of one kind within a window, each under
// a name of its own, a cell holds n / 131,072 on average. For the lowest limit, 3 mails to an address, that happens to one
// name in 10^13 after the 1,280 requests that one IPv6 /32 is allowed, to one in 70,000 after 40,000 requests, and to one in
// 170 after 128,000, which takes 6,400 IPv4 addresses. A limit of 10 is then reached for less than one in 10^13.
//
// Cells that are shared also share the window: it begins with the first name that is counted.
import { createHmac, randomBytes } from 'node:crypto'

export const WINDOW_MS = 15 * 60 * 1000
const CELLS_PER_HASH = 2 ** 17

/** Each has a table of its own of 5 MiB, allocated when it is first used. */
export type Kind =
  | 'known-browser'
  | 'sign-in-account'
  | 'sign-in-account-from-network'
  | 'own-account'
  | 'mail-account'
  | `${'sign-in' | 'code' | 'sso' | 'sso-return' | 'mail'}-network`

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

  /** When the next attempt is allowed, where attempts are delayed. */
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

  /** The two cells of a name, in a window that is not over. */
  return function cellsOf({ kind, name }: { kind: Kind; name: string }): Cell[] {
    const table = tables.get(kind) ?? createTable()
    tables.set(kind, table)
    const hash = createHmac('sha256', key).update(name).digest()
    const now = clock()
    return [0, 1].map((row) => {
      const cell = new Cell(table, row * CELLS_PER_HASH + (hash.readUInt32BE(4 * row) % CELLS_PER_HASH))
      // Also where the window began before the clock was set back.
      if (cell.until <= now || cell.until > now + WINDOW_MS) {
        cell.count = 0
        cell.until = now + WINDOW_MS
        cell.nextAt = 0
      }
      return cell
    })
  }
}
