// An edge counts tunnels only under its lease for traffic. When that of an edge that is gone has ended, other
// edges count the names that they have, too.
import { moveAbandonedCounts } from '../../store/tunnels/abandoned.ts'
import type { Services } from '../context.ts'
import { BATCH_MAX, type Run } from '../deletion-batches.ts'

/** Without the lease, edges count for as long as they are cut off: then nothing is moved. */
export async function moveCountsOfLostEdges({ services, proceed }: Pick<Run, 'services' | 'proceed'>) {
  const { store, propagation }: Services = services
  if (propagation.edgeLeaseMs === undefined) return
  while (await proceed()) {
    const moved = await store.transaction((tx) => moveAbandonedCounts(tx, BATCH_MAX))
    if (moved < BATCH_MAX) return
  }
}
