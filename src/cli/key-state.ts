// How commands print the state of a key or an edge.
import { type KeyState, type KeyTimes, keyState } from '../credentials/key-state.ts'

const texts: Record<KeyState, (times: KeyTimes) => string> = {
  active: () => 'active',
  revoked: ({ revokedAt }) => `revoked ${revokedAt}`,
}

export const printState = (times: KeyTimes): string => texts[keyState(times)](times)
