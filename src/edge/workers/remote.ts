// Tunnels whose clients are not connected to this worker: those of other workers, and then those of other
// edges.
import { setImmediate } from 'node:timers/promises'
import type { Found, RemoteTunnels } from '../peers/remote-tunnels.ts'

type Remote = Pick<RemoteTunnels, 'find' | 'hasOther' | 'onMoved'>
type Failed = Parameters<Remote['find']>[1]

/** Prefers tunnels of `near`. */
export function preferNear(near: Remote, far: Remote | undefined): Remote {
  const isOther = (found: Found | Promise<Found>, failed: Failed): found is Found & object =>
    typeof found === 'object' && !(found instanceof Promise) && found !== failed

  /**
   * The notice that another worker has opened the tunnel may have arrived in the same turn of the event loop
   * as the request, and not have been read yet.
   */
  async function findLater(host: string, failed: Failed): Promise<Found> {
    await setImmediate()
    const found = await near.find(host, failed)
    return isOther(found, failed) ? found : ((await far?.find(host, failed)) ?? found)
  }

  return {
    find(host, failed) {
      const found = near.find(host, failed)
      if (isOther(found, failed)) return found
      const other = found === undefined ? far?.find(host, failed) : undefined
      return isOther(other, failed) ? other : findLater(host, failed)
    },
    hasOther: (host, failed) => near.hasOther(host, failed) || far?.hasOther(host, failed) === true,
    onMoved(tunnel) {
      near.onMoved(tunnel)
      far?.onMoved(tunnel)
    },
  }
}
