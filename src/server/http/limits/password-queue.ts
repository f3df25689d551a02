// Limits how many password hashes run at the same time for each network. Hashing is slow on purpose and uses
// the four threads of libuv's pool: without a limit, a sign-in would wait for every hash that another network
// has requested.

import { ipPrefix } from '../../../lib/net/ip-address.ts'
import { Fault } from '../../domain/fault.ts'
import { createCallerQueue } from './caller-queue.ts'

const RUNNING_MAX = 2
/** The number of failures that a network is allowed in 15 minutes. */
const WAITING_MAX = 50
const RETRY_AFTER_S = 5

export type PasswordQueue = <T>(address: string, hash: () => Promise<T>) => Promise<T>

export function createPasswordQueue(): PasswordQueue {
  const queue = createCallerQueue(RUNNING_MAX)
  return async (address, hash) => {
    const network = ipPrefix(address, 48)
    if (queue.countWaiting(network) >= WAITING_MAX) throw queueFull()
    return queue.run(network, hash)
  }
}

const queueFull = () =>
  new Fault('rate_limited', {
    message: `Too many sign-ins from your network are in progress. Try again in ${RETRY_AFTER_S} seconds.`,
    retryAfterS: RETRY_AFTER_S,
  })
