// How commands print the state of a key or an edge.
import { type KeyState, keyState } from '../credentials/key-state.ts'
import type { Io } from './io.ts'
import { dim, green } from './style.ts'
import type { Cell } from './table.ts'

interface Times {
  revokedAt: string | null
}

const cells: Record<KeyState, (times: Times, io: Io) => Cell> = {
  active: () => green('active'),
  revoked: ({ revokedAt }, io) => dim(`revoked ${io.time(revokedAt)}`),
}

export const printState = (times: Times, io: Io): Cell => cells[keyState(times)](times, io)
