// One request after the other on each connection, as fast as the responses come.
import { openConnections, type RawConnection } from './connections.ts'
import type { Outcome, Repeat } from './jobs.ts'
import { outcomeOf } from './outcome.ts'

export async function repeat({ until, ...target }: Repeat): Promise<Outcome> {
  const latencies: number[] = []
  const sentAt = new Map<RawConnection, number>()
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  const send = (connection: RawConnection) => {
    sentAt.set(connection, performance.now())
    connection.send()
  }
  const all = await openConnections({
    ...target,
    onError: reject,
    onResponse(connection) {
      const now = performance.now()
      latencies.push(now - (sentAt.get(connection) as number))
      const isOver =
        'seconds' in until ? now - began >= until.seconds * 1000 : latencies.length >= until.amount
      if (isOver) resolve()
      else send(connection)
    },
  })
  const began = performance.now()
  for (const connection of all) send(connection)
  await done
  const seconds = (performance.now() - began) / 1000
  for (const { close } of all) close()
  return outcomeOf(latencies, seconds)
}
