// All figures, in the order in which they are measured and shown.
import type { Figure, Result } from './figure.ts'
import { edgeCosts } from './figures/edge-cost.ts'
import { edges } from './figures/edges.ts'
import { inspector } from './figures/inspector.ts'
import { processes } from './figures/process.ts'
import { reports } from './figures/reports.ts'
import { revoke } from './figures/revoke.ts'
import { tunnels } from './figures/tunnels.ts'
import { verify } from './figures/verify.ts'
import { workspace } from './figures/workspace.ts'
import type { Fixtures } from './fixtures.ts'

export const figures: Figure[] = [
  ...workspace,
  ...verify,
  ...reports,
  ...revoke,
  ...tunnels,
  ...inspector,
  ...edgeCosts,
  ...edges,
  ...processes,
]

export async function measure(fixtures: Fixtures, figure: Figure): Promise<Result> {
  const began = performance.now()
  try {
    return { ...(await figure.measure(fixtures)), figure, seconds: (performance.now() - began) / 1000 }
  } finally {
    await fixtures.clear()
  }
}
