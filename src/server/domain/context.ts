// The input of domain functions: the services they use and, if they act for a caller, who that is.

import type { Variant } from '../../contract/variants.ts'
import type { ServerInstruments } from '../../lib/metrics/server-instruments.ts'
import type { ServerLimits } from '../config/server.ts'
import type { Role } from '../store/accounts/members.ts'
import type { CommitUsage } from '../store/usage/group-commit.ts'
import type { PropagationServices } from '../verification/propagation.ts'
import type { Ids } from './ids.ts'

/** Time, randomness and password hashing are injected, so that tests can control them. */
export interface Services extends PropagationServices {
  ids: Ids
  /** Defaults to scrypt. */
  passwordHasher?: PasswordHasher
  tunnelDomain: string
  commitUsage: CommitUsage
  /** Called with the committed counters of a report. */
  afterReport: (counters: Iterable<{ workspaceId: string }>) => void
  /** Called when a transaction of this process has changed locations of tunnels. */
  afterLocations: () => void
  limits: ServerLimits
  /** Whether a mail server is configured. */
  hasMail: boolean
  /** Variant of the public API. In variant B, only admins and owners create and revoke keys. */
  variant: Variant
  /** Whether users may create workspaces in the dashboard, or only the operator. */
  usersCreateWorkspaces: boolean
  instruments: ServerInstruments
}

export interface PasswordHasher {
  hash(password: string): Promise<string>
  verify(input: { hash: string; password: string }): Promise<boolean>
}

/** Who may change a workspace. */
export type Caller = KeyActor | OperatorActor | UserActor

/** Who the audit log names. */
export type Actor =
  | Caller
  /** The server itself, for actions that no one requested. */
  | { kind: 'server'; id: 'adit'; address?: undefined }
  /** An unauthenticated caller; the id is the IP address. */
  | { kind: 'anonymous'; id: string }

export interface KeyActor {
  kind: 'key'
  id: string
  /** The user whose personal key it is; null for a key of the workspace. */
  userId: string | null
  /** False for the key of an agent that was not allowed to manage keys. */
  managesKeys: boolean
  /** IP address of the request. */
  address?: string | undefined
}

export interface OperatorActor {
  kind: 'operator'
  /** The user of the operating system. */
  id: string
  /** The name of the host that the command runs on. */
  address?: string
  /** Whether to override the policy of the workspace. */
  force?: boolean
}

export interface UserActor {
  kind: 'user'
  id: string
  name: string
  /** IP address of the request. */
  address?: string
  /** The session and the required role; absent for users who act through a link. */
  session?: { id: string; needs: Role }
}

/** Limits of a workspace; null is no limit. */
export interface Quotas {
  bytes: number | null
  requests: number | null
  tunnels: number | null
  keys: number
}

/** One workspace, and who acts in it. */
export interface Context extends Services {
  workspaceId: string
  actor: Caller
}

/** A user who acts in a workspace. */
export interface MemberContext extends Context {
  actor: UserActor
  /** The role when the request began; writes check it again in their transaction. */
  role: Role
}
