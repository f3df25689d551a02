// The one definition of an active key; edge credentials have the same states. A new reason why a key is not
// active is added here and to the SQL conditions in store/key-state.ts; the compiler then demands it of every
// user.

export const inactiveStates = ['revoked'] as const
export const keyStates = ['active', ...inactiveStates] as const

export type InactiveState = (typeof inactiveStates)[number]
export type KeyState = (typeof keyStates)[number]

/** The times that decide the state: milliseconds in the database, ISO 8601 on the wire. */
export interface KeyTimes {
  revokedAt: number | string | null
}

export const keyState = ({ revokedAt }: KeyTimes): KeyState => (revokedAt === null ? 'active' : 'revoked')

export const isActive = (times: KeyTimes): boolean => keyState(times) === 'active'
