// A TCP relay that behaves like a long link: each direction has a delay and a bandwidth.
import { connect, createServer, type Socket } from 'node:net'
import type { Test } from '../cleanup.ts'
import { listen } from './listen.ts'

interface LinkOptions {
  delayMs: number
  bytesPerSecond: number
}

export async function startLink(
  t: Test,
  targetPort: number,
  options: LinkOptions,
): Promise<{ port: number }> {
  const link = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    const far = connect({ port: targetPort, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('error', () => {})
      from.once('close', () => to.destroy())
      carry(from, to, options)
    }
  })
  return { port: await listen(t, link) }
}

function carry(from: Socket, to: Socket, { delayMs, bytesPerSecond }: LinkOptions): void {
  /** What is in flight; undefined is the end. */
  const queue: { chunk: Buffer | undefined; dueAt: number }[] = []
  /** As much as fills the link twice; then the sender waits. */
  const queuedMax = (2 * bytesPerSecond * delayMs) / 1000
  let queued = 0
  let freeAt = 0
  let timer: NodeJS.Timeout | undefined

  function deliver(): void {
    const now = performance.now()
    timer = undefined
    for (let next = queue[0]; next && next.dueAt <= now; next = queue[0]) {
      queue.shift()
      queued -= next.chunk?.length ?? 0
      if (next.chunk) to.write(next.chunk)
      else to.end()
    }
    if (queued < queuedMax) from.resume()
    if (queue[0]) timer = setTimeout(deliver, queue[0].dueAt - now)
  }
  function enqueue(chunk: Buffer | undefined): void {
    const size = chunk?.length ?? 0
    freeAt = Math.max(performance.now(), freeAt) + (size / bytesPerSecond) * 1000
    queue.push({ chunk, dueAt: freeAt + delayMs })
    queued += size
    if (queued >= queuedMax) from.pause()
    timer ??= setTimeout(deliver, queue[0] ? queue[0].dueAt - performance.now() : 0)
  }
  from.on('data', enqueue)
  from.once('end', () => enqueue(undefined))
  from.once('close', () => clearTimeout(timer))
}
