// What domain functions are given: the services they use and, where they act for a caller, who that is.
import type { Role } from '../store/members.ts'
import type { Store } from '../store/store.ts'
import type { Totals } from '../store/usage-limits.ts'
import type { Ids } from './ids.ts'

/** Time and chance come in from outside, so that tests can fix them. */
export interface Services {
  store: Store
  /** Milliseconds since 1970, UTC. */
  clock: () => number
  random: (bytes: number) => Uint8Array
  ids: Ids
  tunnelDomain: string
  /** The most that one edge may add to one workspace's day. */
  edgeDayMax: Totals
  /** How many active keys a workspace may have. */
  keysPerWorkspace: number
  /** Called once something that nodes remember has changed, for the one in this process. */
  afterChange: () => void
}

export type Actor =
  | { kind: 'key'; id: string }
  | { kind: 'operator'; id: string }
  /** Somebody who has not proven who they are; the id is their IP address. */
  | { kind: 'visitor'; id: string }
  | UserActor

export interface UserActor {
  kind: 'person'
  id: string
  name: string
  /** The IP address that the request came from. */
  address?: string
  /** In which session, and what role what is being done asks for at the least; absent where a link lets somebody in. */
  session?: { id: string; needs: Role }
}

/** Acting within one workspace, for somebody whom the audit log will name. */
export interface Context extends Services {
  workspaceId: string
  actor: Actor
}
