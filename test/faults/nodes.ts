// Adit's processes, and what can be done to them.
import type { Test } from '../support/cleanup.ts'
import { startServing } from '../support/process.ts'

const STARTS_MAX = 5

export interface Node {
  readonly name: string
  /** Another one after each start. */
  readonly url: string
  /** What it logged as an error, of every run. */
  readonly complaints: string
  start(): Promise<void>
  /** As a power cut would. */
  kill(): Promise<void>
  /** Stops it where it stands: connections stay open and nothing answers. */
  freeze(): void
  thaw(): void
}

export async function startNode(t: Test, name: string, env: Record<string, string>): Promise<Node> {
  let complaints = ''
  const start = async () => {
    // A run of many minutes creates more keys in one workspace than a real one needs.
    const limits = { ADIT_KEYS_PER_WORKSPACE: '1000000' }
    const started = await startServing(t, { ...env, ...limits, ADIT_LOG_LEVEL: 'error' })
    started.child.stderr?.on('data', (chunk) => {
      complaints = (complaints + chunk).slice(-10_000)
    })
    return started
  }
  let running = await start()
  return {
    name,
    get url() {
      return running.url
    },
    get complaints() {
      return complaints
    },
    async start() {
      for (let tries = 1; ; tries++)
        try {
          running = await start()
          return
        } catch (error) {
          // One that loses its database while it starts gives up; whoever supervises it starts it again.
          if (tries === STARTS_MAX) throw error
        }
    },
    async kill() {
      running.child.kill('SIGKILL')
      await running.ended
    },
    freeze: () => running.child.kill('SIGSTOP'),
    thaw: () => running.child.kill('SIGCONT'),
  }
}
