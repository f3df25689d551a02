// Bounds the age of data that was just read. While a process is suspended, bytes wait in its socket buffers,
// and look new when it resumes.

const TICK_MS = 200

export function startEventLoopClock() {
  let previous = performance.now()
  let current = previous
  const timer = setInterval(() => {
    // One tick back, because a process that resumes runs the timer before it reads the buffered bytes.
    previous = current
    current = performance.now()
  }, TICK_MS)
  timer.unref()
  return {
    /** A time at which the process was reading: whatever it reads now was sent later. */
    readingSince: () => previous,
    stop: () => clearInterval(timer),
  }
}
