// What every verb of the domain is given: the world it acts in and, where it acts for somebody, who that is.
import type { Store } from '../store/store.ts'
import type { Ids } from './ids.ts'

/** Time and chance come in from outside, so that tests can fix them. */
export interface World {
  store: Store
  /** Milliseconds since 1970, UTC. */
  clock: () => number
  random: (bytes: number) => Uint8Array
  ids: Ids
  tunnelDomain: string
  /** Called once a revocation is committed, for whoever in this process follows them. */
  afterRevocation: () => void
}

export type Actor = { kind: 'key'; id: string } | { kind: 'operator'; id: string }

/** Acting within one workspace, for somebody whom the audit log will name. */
export interface Context extends World {
  workspaceId: string
  actor: Actor
}
