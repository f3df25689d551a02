// One request after the other on each connection, or each on a new one, as fast as the responses come.
import { openConnection } from './connections.ts'
import type { Job, Outcome } from './jobs.ts'
import type { RequestList } from './requests.ts'

export async function repeat(
  { url, connections: count, bodyPrefix, until, isNewEach }: Job,
  lists: RequestList[],
): Promise<Outcome> {
  const { promise: done, resolve, reject } = Promise.withResolvers<void>()
  const next = lists.map((list) => {
    let sent = 0
    return () => list(sent++)
  })
  let completed = 0
  const open = (index: number) =>
    openConnection({ url, bodyPrefix, onError: reject, onResponse: () => onResponse(index) })
  const connections = await Promise.all(Array.from({ length: count }, (_, index) => open(index)))
  function onResponse(index: number): void {
    completed += 1
    const isOver = 'seconds' in until ? performance.now() >= deadline : completed >= until.amount
    if (isOver) resolve()
    else if (isNewEach) reconnect(index).catch(reject)
    else send(index)
  }
  async function reconnect(index: number): Promise<void> {
    connections[index]?.close()
    connections[index] = await open(index)
    send(index)
  }
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
