// Bounds the age of data that was just read. While a process is suspended, bytes wait in its socket buffers;
// when it resumes, they look new and are not.

const TICK_MS = 200

export function startEventLoopClock() {
  let previous = performance.now()
  let current = previous
  const timer = setInterval(() => {
    // One tick back: when the process resumes, the timer runs first and the buffered bytes are read next.
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
