// Loaded before Adit: what it does about once a minute, it does several times a second.
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers/promises'

const LONG_MS = 30_000
const SHORT_MS = 200

const { setTimeout: delay } = timers
timers.setTimeout = (ms = 0, ...rest) => delay(ms >= LONG_MS ? SHORT_MS : ms, ...rest)
syncBuiltinESMExports()
