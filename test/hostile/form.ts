// Two forms of the hostile suites: seconds, or minutes with npm run test:hostile.
import { everyCut, everyPrefix } from '../support/network/broken-connections.ts'

const isLong = process.env.HOSTILE_FORM === 'long'

/** Repeats a run that failed: HOSTILE_SEED. */
export const seed = process.env.HOSTILE_SEED || String(Date.now())

export const prefixes = isLong ? everyCut : everyPrefix

export const amount = isLong
  ? { requests: 100_000, brokenConnections: 20_000, cuts: 2_000, tunnelClients: 10_000, secondsMax: 420 }
  : { requests: 2_000, brokenConnections: 400, cuts: 500, tunnelClients: 300, secondsMax: 90 }
