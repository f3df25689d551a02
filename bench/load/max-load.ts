// Maximum throughput, measured by autocannon.
import autocannon, { type Prepared } from 'autocannon'
import type { Job, Outcome } from './jobs.ts'

const SAMPLE_MS = 50
/** A query over ten million rows is slow. */
const TIMEOUT_S = 60

export function runAtMaxLoad(job: Job, lists: Prepared[][]): Promise<Outcome> {
  const { url, connections, until, expect } = job
  let next = 0
  let completed = 0
  let firstError: Error | undefined
  const began = performance.now()
  let last = began
  return new Promise((resolve, reject) => {
    autocannon(
      {
        url,
        connections,
        ...('seconds' in until ? { duration: until.seconds } : { amount: until.amount }),
        sampleInt: SAMPLE_MS,
        timeout: TIMEOUT_S,
        setupClient({ requestIterator }) {
          const list = lists[next++ % lists.length] as Prepared[]
          requestIterator.requests = list
          requestIterator.currentRequestIndex = 0
          requestIterator.currentRequest = list[0] as Prepared
        },
        ...(expect && 'body' in expect && { expectBody: expect.body }),
        ...(expect && 'starts' in expect && { verifyBody: (body) => body.startsWith(expect.starts) }),
      },
      (error, result) => {
        // Without a result, although the types have one.
        if (error) return reject(error)
        const { errors, timeouts, mismatches, non2xx, latency } = result
        const faults = { errors, timeouts, mismatches, non2xx }
        if (completed === 0 || Object.values(faults).some((count) => count > 0))
          return reject(
            new Error(
              `bad responses: ${JSON.stringify({ completed, ...faults })} ${firstError?.message ?? ''}`,
            ),
          )
        const seconds = (last - began) / 1000
        resolve({ completed, seconds, perSecond: completed / seconds, p50: latency.p50, p99: latency.p99 })
      },
    )
      .on('response', () => {
        completed += 1
        last = performance.now()
      })
      .on('reqError', (error) => {
        firstError ??= error
      })
  })
}
