// Verifies the keys of all open tunnels again, when revocations may have been missed.
import type { Verifier } from '../edge-sdk/index.ts'
import type { Registry } from './registry.ts'

const RETRY_DELAY_MS = 1_000

/**
 * Closes the tunnels of invalid keys. Retries keys that cannot be verified; their tunnels stay open
 * meanwhile. Returns a function that starts it, once if it is running already.
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
