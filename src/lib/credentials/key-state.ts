// The only definition of an active key. Edge credentials have the same states, but never expire. Add a new
// reason why a key is not active here and to the SQL conditions in store/key-state.ts; the compiler then
// finds every place that has to handle it.

export const inactiveStates = ['revoked', 'expired'] as const
export const keyStates = ['active', ...inactiveStates] as const

export type InactiveState = (typeof inactiveStates)[number]
export type KeyState = (typeof keyStates)[number]

/** The times that decide the state, in milliseconds since 1970. */
interface KeyTimes {
  revokedAt: number | null
  /** The first instant at which the key is not active. */
  expiresAt: number | null
  /** The time of the database: the clocks of nodes and edges may differ. */
  now: number
}

export function keyState({ revokedAt, expiresAt, now }: KeyTimes): KeyState {
  if (revokedAt !== null) return 'revoked'
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'active'
}
