// Checks the nodes that are registered in the database, and the clock of this machine against the database.
import { readDatabaseClock } from '../store/engine/clock.ts'
import type { Store } from '../store/engine/store.ts'
import { readSchemaState } from '../store/schema/migrate.ts'
import { listNodes } from '../verification/nodes.ts'
import { type Finding, ok, problem, skipped, warning } from './check.ts'

const CLOCK_SAMPLES = 3
const CLOCK_WARNING_MS = 1_000
/** A code of two-factor authentication is valid for 30 seconds. */
const CLOCK_PROBLEM_MS = 30_000

/** The sample with the shortest round trip is the most exact. */
export async function checkClock(store: Store, clock: () => number): Promise<Finding> {
  let best = { offsetMs: 0, roundTripMs: Number.POSITIVE_INFINITY }
  for (let sample = 0; sample < CLOCK_SAMPLES; sample++) {
    const startedAt = performance.now()
    const before = clock()
    const databaseTime = await readDatabaseClock(store)
    const roundTripMs = performance.now() - startedAt
    if (roundTripMs < best.roundTripMs)
      best = { offsetMs: Math.round(before + roundTripMs / 2 - databaseTime), roundTripMs }
  }
  const uncertainMs = Math.ceil(best.roundTripMs / 2)
  const offset = Math.abs(best.offsetMs)
  const described = `${(offset / 1000).toFixed(3)} s ${best.offsetMs < 0 ? 'behind' : 'ahead of'} the database`
  if (offset - uncertainMs <= CLOCK_WARNING_MS) return ok(`The clock is ${described} (±${uncertainMs} ms)`)
  const isProblem = offset - uncertainMs > CLOCK_PROBLEM_MS
  const effect = isProblem
    ? ' Codes of two-factor authentication and single sign-on fail.'
    : ' Times of sessions, links and reports are wrong by that.'
  return (isProblem ? problem : warning)(
    `The clock of this machine is ${described}.${effect}`,
    'Synchronize the clocks of both machines with NTP: `timedatectl status` shows whether they are.',
  )
}

/** Returns a finding if there are no tables to read. */
export async function checkTables(store: Store): Promise<Finding | undefined> {
  const { version, incompatibility } = await readSchemaState(store.db)
  if (incompatibility) return skipped('The database cannot be used.')
  return version === 0 ? skipped('The database has no tables yet.') : undefined
}

export async function checkNodes(store: Store): Promise<Finding[]> {
  const unusable = await checkTables(store)
  if (unusable) return [unusable]
  const now = await readDatabaseClock(store)
  const nodes = await listNodes({ store, clock: () => now })
  if (nodes.length === 0) return [warning('No node is running.', 'Start `adit serve`.')]
  const findings = nodes.flatMap((node) => nodeFindings(node, now))
  const versions = new Set(nodes.map(({ version }) => version))
  if (versions.size > 1)
    findings.push(
      warning(
        `Nodes run different versions: ${[...versions].sort().join(', ')}.`,
        'Complete the upgrade of all nodes (docs/operations/upgrades.md).',
      ),
    )
  return findings.length > 0 ? findings : [ok(`${nodes.length} running, leases held, all up to date`)]
}

function nodeFindings(node: Awaited<ReturnType<typeof listNodes>>[number], now: number): Finding[] {
  const { id, host, pid, lease, behind, lastHeartbeatAt } = node
  const name = `Node ${id} (${host}, process ${pid})`
  if (lease === 'expired')
    return [
      warning(
        `${name} has sent no heartbeat since ${lastHeartbeatAt}: it hangs, was killed, or its clock is behind.`,
        'Restart it. If it no longer exists, the next revocation removes it, after waiting for 2 seconds.',
      ),
    ]
  const aheadMs = Date.parse(lastHeartbeatAt) - now
  return [
    ...(behind > 0
      ? [
          warning(
            `${name} is ${behind} entries behind the change log.`,
            'Run the command again. If it stays behind, check the load of the node and its connection to ' +
              'the database.',
          ),
        ]
      : []),
    ...(aheadMs > CLOCK_WARNING_MS
      ? [
          warning(
            `The clock of ${name} is at least ${(aheadMs / 1000).toFixed(1)} s ahead of the database.`,
            'Synchronize the clock of that machine with NTP.',
          ),
        ]
      : []),
  ]
}
