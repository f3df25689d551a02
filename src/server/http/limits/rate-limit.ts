// The configured limit of requests per key and minute, counted on each node.
import type { FastifyReply } from 'fastify'
import { formatDuration } from '../../domain/duration.ts'
import { Fault } from '../../domain/fault.ts'
import { type MaybePromise, thenMaybe } from '../../verification/verify.ts'

const WINDOW_MS = 60_000

export type RateLimit = (keyId: string, reply: FastifyReply) => MaybePromise<void>

interface RequestCount {
  count: number
  /** Seconds until the count starts again. */
  resetS: number
}

export const createRateLimit =
  (
    perMinute: number,
    { countRequest }: { countRequest: (keyId: string) => MaybePromise<RequestCount> },
  ): RateLimit =>
  (keyId, reply) =>
    thenMaybe(countRequest(keyId), ({ count, resetS }) => {
      const remaining = Math.max(0, perMinute - count)
      reply.header('ratelimit-policy', `"key";q=${perMinute};w=${WINDOW_MS / 1000}`)
      reply.header('ratelimit', `"key";r=${remaining};t=${resetS}`)
      if (count > perMinute)
        throw new Fault('rate_limited', {
          message: `Too many requests with this API key. Try again in ${formatDuration(resetS)}.`,
          retryAfterS: resetS,
        })
    })

/** Only valid keys are counted, so the map has at most one entry per key in use. */
export function createRequestCounts(clock: () => number) {
  let windowStart = clock()
  let counts = new Map<string, number>()
  return {
    countRequest(keyId: string): RequestCount {
      const now = clock()
      if (now - windowStart >= WINDOW_MS || now < windowStart) {
        windowStart = now
        counts = new Map()
      }
      const count = (counts.get(keyId) ?? 0) + 1
      counts.set(keyId, count)
      return { count, resetS: Math.ceil((windowStart + WINDOW_MS - now) / 1000) }
    },
  }
}
