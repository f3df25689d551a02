// Tells how old what was just read may be. While a process stands still, bytes wait in its buffers; when it goes on, they
// look new and are not.

const BEAT_MS = 200

export interface EventLoopClock {
  /** A moment before which the process was certainly reading, and after which whatever it reads now was sent. */
  readingSince(): number
  stop(): void
}

export function startEventLoopClock(): EventLoopClock {
  let before = performance.now()
  let last = before
  const timer = setInterval(() => {
    // One beat back: after a standstill the timer comes first, and what waited is read next.
    before = last
    last = performance.now()
  }, BEAT_MS)
  timer.unref()
  return { readingSince: () => before, stop: () => clearInterval(timer) }
}
