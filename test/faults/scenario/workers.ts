// Concurrent tasks that can be stopped and awaited together.

export interface Workers {
  /** Tracks a task. */
  run(task: Promise<unknown>): void
  /** Repeats a task until `stop`. */
  loop(task: (iteration: number) => Promise<unknown>): void
  readonly isStopped: boolean
  /** Starts no new iteration and waits for running tasks. Throws the first failure, if any. */
  stop(): Promise<void>
}

export function createWorkers(): Workers {
  const running = new Set<Promise<unknown>>()
  const failures: unknown[] = []
  let stopped = false
  const workers: Workers = {
    run(task) {
      const tracked = task.catch((error) => failures.push(error)).finally(() => running.delete(tracked))
      running.add(tracked)
    },
    loop(task) {
      workers.run(
        (async () => {
          for (let iteration = 1; !stopped; iteration++) await task(iteration)
        })(),
      )
    },
    get isStopped() {
      return stopped
    },
    async stop() {
      stopped = true
      while (running.size > 0) await Promise.all(running)
      if (failures.length > 0) throw failures[0]
    },
  }
  return workers
}
