// Verifies the keys of all open tunnels again, when revocations may have been missed.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Verifier } from '../../edge-sdk/index.ts'
import type { ClientKey } from '../tunnels/client.ts'
import type { Registry } from '../tunnels/registry.ts'

const RETRY_DELAY_MS = 1_000

interface ReverificationOptions {
  readonly registry: Pick<Registry, 'keys'>
  verify: Verifier['verify']
  onInvalid(key: ClientKey): void | Promise<void>
}

/**
 * Resolves when each key that is in use now has a result, and `onInvalid` is done with those that are not
 * valid. A key that cannot be verified is tried again, and its tunnels stay open meanwhile.
 */
export async function reverify({ registry, verify, onInvalid }: ReverificationOptions): Promise<void> {
  for (let keys = registry.keys(); keys.length > 0; ) {
    const unverified: ClientKey[] = []
    await Promise.all(
      keys.map(async (key) => {
        const result = await verify(key.secret).catch(() => undefined)
        if (!result) unverified.push(key)
        else if (!result.valid) await onInvalid(key)
      }),
    )
    keys = unverified
    if (keys.length > 0) await sleep(RETRY_DELAY_MS, undefined, { ref: false })
  }
}
