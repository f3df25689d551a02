// One request after the other on each connection, as fast as the responses come.
import { openConnections } from './connections.ts'
import type { Job, Outcome } from './jobs.ts'
import type { RequestList } from './requests.ts'

export async function repeat({ until, ...job }: Job, lists: RequestList[]): Promise<Outcome> {
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  const next = lists.map((list) => {
    let sent = 0
    return () => list(sent++)
  })
  let completed = 0
  const connections = await openConnections({
    ...job,
    onError: reject,
    onResponse(index) {
      completed += 1
      const isOver = 'seconds' in until ? performance.now() >= deadline : completed >= until.amount
      if (isOver) resolve()
      else send(index)
    },
  })
  const send = (index: number) => {
    connections[index]?.send((next[index] as () => Buffer)())
  }
  const began = performance.now()
  const deadline = began + ('seconds' in until ? until.seconds * 1000 : 0)
  for (const index of connections.keys()) send(index)
  await done.finally(() => {
    for (const { close } of connections) close()
  })
  return { completed, seconds: (performance.now() - began) / 1000 }
}
