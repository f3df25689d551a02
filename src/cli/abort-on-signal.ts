/** Ctrl-C aborts the signal instead of ending the process, so that a command can clean up. */
export function abortOnSignal() {
  const controller = new AbortController()
  const abort = () => controller.abort()
  const signals = ['SIGINT', 'SIGTERM'] as const
  for (const name of signals) process.on(name, abort)
  const release = () => {
    for (const name of signals) process.off(name, abort)
  }
  return { signal: controller.signal, release }
}
