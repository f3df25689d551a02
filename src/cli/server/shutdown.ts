// When a long-running command shuts down: on SIGTERM or SIGINT, or when npm, which started it, is gone.
import { closeSync, openSync } from 'node:fs'
import { isStartedByNpm } from '../../server/config/environment.ts'

export const REPEATED_SIGNAL_MS = 1_000
const PARENT_POLL_MS = 250

export const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const

export interface Shutdown {
  /** Resolves with the reason. */
  requested: Promise<string>
  /** Resolves when the delay after the request is over. */
  due: Promise<void>
}

/**
 * The first signal starts the delay, in which load balancers notice. A second one ends the delay, and a third
 * kills the process. On a terminal, npm forwards the same Ctrl-C again, so a signal shortly after another is
 * ignored.
 */
export function awaitShutdown(delayS: number, signals: readonly NodeJS.Signals[] = STOP_SIGNALS): Shutdown {
  const requested = Promise.withResolvers<string>()
  const due = Promise.withResolvers<void>()
  let state: 'running' | 'delayed' | 'stopping' = 'running'
  let signaledAt = Number.NEGATIVE_INFINITY
  const stop = () => {
    state = 'stopping'
    due.resolve()
  }
  const request = (reason: string) => {
    if (performance.now() - signaledAt < REPEATED_SIGNAL_MS) return
    signaledAt = performance.now()
    if (state === 'stopping') process.kill(process.pid, 'SIGKILL')
    else if (state === 'delayed' || delayS === 0) stop()
    else {
      state = 'delayed'
      setTimeout(stop, delayS * 1_000).unref()
    }
    requested.resolve(reason)
  }
  for (const name of signals) process.on(name, request)
  onNpmGone(() => {
    // After a signal, npm ends because of it: that is not a second request.
    if (state === 'running') request('npm is gone')
  })
  return { requested: requested.promise, due: due.promise }
}

/**
 * SIGHUP restarts workers. It stops the program if its terminal was closed, which sends the signal, too. Call
 * this first: a signal before would kill the program. Returns a function that gets what restarts the workers,
 * once they run.
 */
export function onHangup(): (restart: () => unknown) => void {
  const hasTerminal = isTerminalOpen()
  const { promise: started, resolve: setRestart } = Promise.withResolvers<() => unknown>()
  process.on('SIGHUP', () => {
    if (hasTerminal && !isTerminalOpen()) process.kill(process.pid, 'SIGTERM')
    else void started.then((restart) => restart())
  })
  return setRestart
}

/** Whether this process has a terminal that is still open. */
function isTerminalOpen(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}

/** Does nothing if npm has not started this process. */
export function onNpmGone(callback: () => void): void {
  if (!isStartedByNpm()) return
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    callback()
  }, PARENT_POLL_MS)
  timer.unref()
}
