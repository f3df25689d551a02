// How commands print the state of a key or an edge.
import type { KeyState } from '../../lib/credentials/key-state.ts'
import type { Io } from '../io.ts'
import { dim, green } from '../style.ts'
import type { Cell } from '../table.ts'

interface Key {
  /** Undefined where an expired key counts as revoked. */
  state?: KeyState
  /** Set for an expired key, too. */
  revokedAt: string | null
  workspaceArchivedAt?: string | null
}

const cells: Record<KeyState, (key: Key, io: Io) => Cell> = {
  active: ({ workspaceArchivedAt }) => (workspaceArchivedAt ? dim('workspace archived') : green('active')),
  revoked: ({ revokedAt }, io) => dim(`revoked ${io.time(revokedAt)}`),
  expired: ({ revokedAt }, io) => dim(`expired ${io.time(revokedAt)}`),
}

export const printState = (key: Key, io: Io): Cell =>
  cells[key.state ?? (key.revokedAt === null ? 'active' : 'revoked')](key, io)
