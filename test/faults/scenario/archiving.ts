// Workspaces that the operator archives and restores again, while their keys are presented to every node.
// Each is changed by one worker, so that the order of its changes is known.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Services } from '../../../src/server/domain/context.ts'
import { Fault } from '../../../src/server/domain/fault.ts'
import { archiveAsOperator, restore } from '../../../src/server/domain/workspaces/archive.ts'
import { operator } from '../../support/api/server.ts'
import type { Random } from '../../support/random.ts'
import type { Attempt } from '../checker/history.ts'
import type { Node } from '../nodes.ts'
import type { Calls, Key } from './calls.ts'
import type { Workers } from './workers.ts'

const PAUSE_MAX_MS = 1_000
/** When the keys are presented again after a change, and after the burst at its acknowledgement. */
const PROBE_AFTER_MS = [40, 300, 900]

export interface ArchivableWorkspace {
  slug: string
  keys: readonly Key[]
}

interface ArchivingOptions {
  nodes: readonly Node[]
  calls: Calls
  workers: Workers
  attempts: Attempt[]
  workspaces: readonly ArchivableWorkspace[]
  services: Services
  random: Random
}

export function startArchiving(options: ArchivingOptions) {
  const { nodes, calls, workers, attempts, workspaces, services, random: root } = options
  const probes = Object.values(calls.probes)

  /** Whether it was acknowledged: it may have taken effect although it was not. */
  async function change(kind: 'archive' | 'restore', slug: string): Promise<boolean> {
    const startMs = performance.now()
    const changed = (kind === 'archive' ? archiveAsOperator : restore)(services, operator, slug)
    // A conflict is the acknowledgement of an earlier attempt, whose response was lost.
    const isAcknowledged = await changed.then(
      () => true,
      (error) => error instanceof Fault && error.code === 'conflict',
    )
    const response = isAcknowledged
      ? { status: 200, text: '', json: undefined, headers: new Headers() }
      : undefined
    const endMs = performance.now()
    attempts.push({ kind: `operator.${kind}`, node: 'operator', startMs, endMs, workspace: slug, response })
    return isAcknowledged
  }

  async function changeUntilAcknowledged(kind: 'archive' | 'restore', slug: string): Promise<void> {
    while (!(await change(kind, slug))) await sleep(100)
  }

  function probeAll(keys: readonly Key[], random: Random): void {
    for (const node of nodes) for (const key of keys) workers.run(random.pick(probes)(node, key))
  }

  for (const { slug, keys } of workspaces) {
    const random = root.fork(slug)
    workers.loop(async (iteration) => {
      // Also what was cached during the change before.
      probeAll(keys, random)
      await sleep(random.between(50, PAUSE_MAX_MS))
      let isDone = false
      workers.run(
        (async () => {
          for (; !isDone; await sleep(random.between(10, 120))) probeAll(keys.slice(0, 1), random)
        })(),
      )
      await changeUntilAcknowledged(iteration % 2 === 1 ? 'archive' : 'restore', slug)
      isDone = true
      for (const afterMs of [0, ...PROBE_AFTER_MS]) {
        await sleep(afterMs)
        probeAll(keys, random)
      }
    })
  }

  return {
    /** Restores those that are archived. */
    settle: () => Promise.all(workspaces.map(({ slug }) => changeUntilAcknowledged('restore', slug))),
  }
}
