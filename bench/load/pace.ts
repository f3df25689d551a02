// Requests at a constant rate. autocannon's own rate limit sends the requests of a second in one burst. Here
// each request has a due time, and its latency counts from then, even if all connections were busy.
import { openConnections, type RawConnection } from './connections.ts'
import type { Outcome, Pace } from './jobs.ts'
import { outcomeOf } from './outcome.ts'

export async function pace({ perSecond, seconds, ...target }: Pace): Promise<Outcome> {
  const dueAt = new Map<RawConnection, number>()
  const waiting: number[] = []
  const latencies: number[] = []
  let failed: Error | undefined

  const send = (connection: RawConnection, due: number) => {
    dueAt.set(connection, due)
    connection.send()
  }
  const all = await openConnections({
    ...target,
    onError(error) {
      failed = error
    },
    onResponse(connection) {
      latencies.push(performance.now() - (dueAt.get(connection) as number))
      const due = waiting.shift()
      if (due === undefined) free.push(connection)
      else send(connection, due)
    },
  })
  const free = [...all]

  const began = performance.now()
  const total = Math.floor(perSecond * seconds)
  for (let sent = 0; sent < total; ) {
    const now = performance.now()
    for (; sent < total && began + (sent * 1000) / perSecond <= now; sent += 1) {
      const due = began + (sent * 1000) / perSecond
      const connection = free.pop()
      if (connection) send(connection, due)
      else waiting.push(due)
    }
    // Not a timer: its resolution of a millisecond would batch requests.
    await new Promise(setImmediate)
  }
  while (latencies.length < total && !failed) await new Promise((resolve) => setTimeout(resolve, 5))
  for (const { close } of all) close()
  if (failed) throw failed
  return outcomeOf(latencies, (performance.now() - began) / 1000)
}
