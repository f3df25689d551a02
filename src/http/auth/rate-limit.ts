// A limit on requests per key and minute, where one is configured. Each node counts for itself.
import type { FastifyReply } from 'fastify'
import { Fault } from '../../domain/fault.ts'

const WINDOW_MS = 60_000

export type RateLimit = (keyId: string, reply: FastifyReply) => void

/** Only good keys are counted, each at most once per window, so the map is no larger than the keys in use. */
export function createRateLimit(perMinute: number, clock: () => number): RateLimit {
  let windowStart = clock()
  let spent = new Map<string, number>()

  return (keyId, reply) => {
    const now = clock()
    if (now - windowStart >= WINDOW_MS || now < windowStart) {
      windowStart = now
      spent = new Map()
    }
    const count = (spent.get(keyId) ?? 0) + 1
    spent.set(keyId, count)
    const left = Math.max(0, perMinute - count)
    const resetS = Math.ceil((windowStart + WINDOW_MS - now) / 1000)
    reply.header('ratelimit-policy', `"key";q=${perMinute};w=${WINDOW_MS / 1000}`)
    reply.header('ratelimit', `"key";r=${left};t=${resetS}`)
    if (count > perMinute)
      throw new Fault('rate_limited', {
        message: `Too many requests with this API key. Try again in ${resetS} s.`,
        retryAfterS: resetS,
      })
  }
}
