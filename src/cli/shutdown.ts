// When a command that runs on is to end: at a signal, or when npm, which started it, is gone.
import { isStartedByNpm } from '../config.ts'

const IMPATIENT_MS = 1_000
const LOOK_FOR_PARENT_MS = 250

export interface Stopping {
  /** With the reason. */
  asked: Promise<string>
  /** When the delay after that is over. */
  due: Promise<void>
}

/**
 * The first wish to stop begins the delay, in which proxies learn of it. Whoever asks again does not want to wait: that ends
 * the delay, and once that is over, all else. But at a terminal npm hands the same Ctrl-C on a second time, at once, and
 * that is no second wish.
 */
export function awaitShutdown(delayS: number): Stopping {
  const asked = Promise.withResolvers<string>()
  const due = Promise.withResolvers<void>()
  let state: 'serving' | 'waiting' | 'leaving' = 'serving'
  let heardAt = Number.NEGATIVE_INFINITY
  const leave = () => {
    state = 'leaving'
    due.resolve()
  }
  const ask = (reason: string) => {
    if (performance.now() - heardAt < IMPATIENT_MS) return
    heardAt = performance.now()
    if (state === 'leaving') process.kill(process.pid, 'SIGKILL')
    else if (state === 'waiting' || delayS === 0) leave()
    else {
      state = 'waiting'
      setTimeout(leave, delayS * 1_000).unref()
    }
    asked.resolve(reason)
  }
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, ask)
  if (isStartedByNpm())
    watchParent(() => {
      // After another wish that is its consequence, not a wish.
      if (state === 'serving') ask('npm is gone')
    })
  return { asked: asked.promise, due: due.promise }
}

function watchParent(onGone: () => void): void {
  const parent = process.ppid
  const watch = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(watch)
    onGone()
  }, LOOK_FOR_PARENT_MS)
  watch.unref()
}
