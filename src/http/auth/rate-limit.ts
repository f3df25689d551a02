// The configured limit of requests per key and minute, counted on each node.
import type { FastifyReply } from 'fastify'
import { formatDuration } from '../../domain/duration.ts'
import { Fault } from '../../domain/fault.ts'

const WINDOW_MS = 60_000

export type RateLimit = (keyId: string, reply: FastifyReply) => void

/** Only valid keys are counted, so the map has at most one entry per key in use. */
export function createRateLimit(perMinute: number, clock: () => number): RateLimit {
  let windowStart = clock()
  let counts = new Map<string, number>()

  return (keyId, reply) => {
    const now = clock()
    if (now - windowStart >= WINDOW_MS || now < windowStart) {
      windowStart = now
      counts = new Map()
    }
    const count = (counts.get(keyId) ?? 0) + 1
    counts.set(keyId, count)
    const remaining = Math.max(0, perMinute - count)
    const resetS = Math.ceil((windowStart + WINDOW_MS - now) / 1000)
    reply.header('ratelimit-policy', `"key";q=${perMinute};w=${WINDOW_MS / 1000}`)
    reply.header('ratelimit', `"key";r=${remaining};t=${resetS}`)
    if (count > perMinute)
      throw new Fault('rate_limited', {
        message: `Too many requests with this API key. Try again in ${formatDuration(resetS)}.`,
        retryAfterS: resetS,
      })
  }
}
