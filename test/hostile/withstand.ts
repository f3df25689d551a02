// Asserts that a server process withstands broken connections: it still runs, serves, and leaks nothing.
import assert from 'node:assert/strict'
import {
  type BrokenConnection,
  breakConnections,
  connectionsTo,
  errorsIn,
  openDescriptors,
} from '../support/network/broken-connections.ts'
import { collectText } from '../support/network/collect.ts'
import type { RunningProcess } from '../support/processes/process.ts'
import { until } from '../support/until.ts'

interface Target extends Pick<RunningProcess, 'child' | 'ended'> {
  port: number
  /** A valid request on a separate connection, which must succeed. */
  probe: () => Promise<void>
  /** How many more idle connections than before a well-behaved client may keep. */
  idleMax?: number
  /** The port of a server to which the process keeps connections for reuse; they are not counted. */
  serverPort?: number
}

/** Longer than a server waits for a client that does not close its end. */
const CLOSED_WITHIN_MS = 20_000

/** Returns the number of connections. */
export async function withstand(
  { child, ended, port, probe, idleMax = 0, serverPort }: Target,
  connections: Iterable<BrokenConnection>,
): Promise<number> {
  const stderr = collectText(child.stderr)
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  const { pid } = child as { pid: number }
  await probe()
  const countDescriptors = () => {
    const all = openDescriptors(pid)
    return all === undefined || serverPort === undefined ? all : all - connectionsTo(pid, serverPort)
  }
  const before = countDescriptors()

  let last: BrokenConnection | undefined
  const recorded = function* () {
    for (const connection of connections) {
      last = connection
      yield connection
    }
  }
  const made = await breakConnections(port, recorded(), hasEnded)
  if (hasEnded()) {
    const { opening, cut, ending } = last as BrokenConnection
    const where = `about "${opening.name}", ${cut} of ${opening.bytes.length} bytes, ${ending}`
    assert.fail(`ended after ${made} connections, ${where}:\n${(await ended).stderr}`)
  }
  await probe()
  await until(
    'all descriptors are closed',
    () => before === undefined || (countDescriptors() ?? 0) <= before + idleMax,
    CLOSED_WITHIN_MS,
  )
  await probe()
  assert.deepEqual(errorsIn(stderr()), [])
  return made
}
