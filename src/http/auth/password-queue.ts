// Limits how many password hashes of one network run at once. They take long on purpose, and all of them share the four
// threads of the process: without a limit, a sign-in would wait for all that another network has begun before it.
import { Fault } from '../../domain/fault.ts'
import { ipPrefix } from '../../net/ip-address.ts'

const RUNNING_MAX = 2
/** As many as the failures that an address is allowed in 15 minutes. */
const WAITING_MAX = 50
const RETRY_AFTER_S = 5

export type InTurn = <T>(address: string, act: () => Promise<T>) => Promise<T>

/** Never call it inside itself: both would wait for the same turn. Never inside a transaction: it would stay open. */
export function createPasswordQueue(): InTurn {
  /** Only networks that have something running. */
  const networks = new Map<string, { running: number; waiting: (() => void)[] }>()

  return async (address, act) => {
    const name = ipPrefix(address, 48)
    const network = networks.get(name) ?? { running: 0, waiting: [] }
    networks.set(name, network)
    if (network.running < RUNNING_MAX) network.running += 1
    else if (network.waiting.length < WAITING_MAX)
      await new Promise<void>((resolve) => network.waiting.push(resolve))
    else throw tooManyAtOnce()
    try {
      return await act()
    } finally {
      const next = network.waiting.shift()
      if (next) next()
      else network.running -= 1
      if (network.running === 0) networks.delete(name)
    }
  }
}

const tooManyAtOnce = () =>
  new Fault('rate_limited', {
    message: `Too many passwords are being checked for your network. Try again in ${RETRY_AFTER_S} seconds.`,
    retryAfterS: RETRY_AFTER_S,
  })
