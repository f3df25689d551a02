// Tells tunnel clients of edges that have appeared since they connected, so that they can open the further
// connections that they want.
import type { Tunnel } from './tunnel.ts'

/** The control plane names at most so many. */
const EDGES_MAX = 3

export function tellOtherEdges(tunnels: Iterable<Tunnel>, edges: readonly string[]): void {
  for (const tunnel of tunnels) {
    const { edges: known = [] } = tunnel.address
    // Which edges are named out of many changes with their load: clients that know enough are not told.
    const knowsEnough = known.length >= EDGES_MAX && edges.length >= EDGES_MAX
    if (knowsEnough || edges.every((edge) => known.includes(edge))) continue
    tunnel.address = { ...tunnel.address, edges }
    for (const client of tunnel.clients) client.tellOtherEdges(edges)
  }
}
