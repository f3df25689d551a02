// Verifies the keys of all open tunnels again, when revocations may have been missed.
import type { Verifier } from '../edge-sdk/index.ts'
import type { Registry } from './registry.ts'

const RETRY_DELAY_MS = 1_000

/**
 * Returns a function that verifies all keys and closes the tunnels of invalid ones. It retries if a key
 * cannot be verified, whose tunnels stay open meanwhile. Calls during a run cause one more run.
 */
export function createReverification(registry: Registry, verify: Verifier['verify']): () => void {
  let isRunning = false
  let isRequested = false

  async function run(): Promise<void> {
    isRunning = true
    isRequested = false
    const results = await Promise.all(
      registry.keys().map(async ({ secret, id }) => {
        const result = await verify(secret).catch(() => undefined)
        if (result?.valid === false) registry.closeByKey(id, 'revoked')
        return result
      }),
    )
    isRunning = false
    if (isRequested) void run()
    else if (results.includes(undefined)) setTimeout(start, RETRY_DELAY_MS).unref()
  }
  function start(): void {
    isRequested = true
    if (!isRunning) void run()
  }
  return start
}
