// Limits how many password hashes run at the same time for each network. Hashing is slow on purpose and uses
// the four threads of libuv's pool: without a limit, a sign-in would wait for every hash that another network
// has requested.
import { Fault } from '../../domain/fault.ts'
import { ipPrefix } from '../../net/ip-address.ts'

const RUNNING_MAX = 2
/** The number of failures that a network is allowed in 15 minutes. */
const WAITING_MAX = 50
const RETRY_AFTER_S = 5

export type PasswordQueue = <T>(address: string, hash: () => Promise<T>) => Promise<T>

/**
 * Do not nest calls: they would deadlock. Do not call it in a transaction, which would stay open while it
 * waits.
 */
export function createPasswordQueue(): PasswordQueue {
  /** Only networks with a hash in progress. */
  const networks = new Map<string, { running: number; waiting: (() => void)[] }>()

  return async (address, hash) => {
    const name = ipPrefix(address, 48)
    const network = networks.get(name) ?? { running: 0, waiting: [] }
    networks.set(name, network)
    if (network.running < RUNNING_MAX) network.running += 1
    else if (network.waiting.length < WAITING_MAX)
      await new Promise<void>((resolve) => network.waiting.push(resolve))
    else throw queueFull()
    try {
      return await hash()
    } finally {
      const next = network.waiting.shift()
      if (next) next()
      else network.running -= 1
      if (network.running === 0) networks.delete(name)
    }
  }
}

const queueFull = () =>
  new Fault('rate_limited', {
    message: `Too many sign-ins from your network are in progress. Try again in ${RETRY_AFTER_S} seconds.`,
    retryAfterS: RETRY_AFTER_S,
  })
