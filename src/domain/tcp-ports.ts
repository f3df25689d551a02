// Assigns the ports of TCP tunnels. A port belongs to one name of one workspace in the whole installation
// until it expires or the operator releases it: programs that connect to it trust that it leads to the same
// server as before.
import type { Refusal } from '../contract/tunnels.ts'
import { type PortRange, portLimitMessage, type TcpPortSettings } from '../net/tcp-ports.ts'
import type { Tx } from '../store/store.ts'
import { insertPort, listFreePorts, listNamesWithPort, usePorts } from '../store/tcp-ports.ts'
import { keyOf, type NameId } from '../store/tunnel-names.ts'
import { lockWorkspaces } from '../store/workspaces.ts'
import type { Services } from './context.ts'
import type { ParsedTunnel } from './reported-tunnels.ts'

/** Ports that are tried for a name: what a claim costs does not depend on how many are assigned. */
const CANDIDATES = 256

export interface PortCandidate extends NameId {
  parsed: ParsedTunnel
}

interface RefusedPort {
  reason: Refusal
  message: string
}

/** The port of an admitted tunnel, or why it gets none. */
export type AssignPort = (candidate: PortCandidate) => Promise<number | RefusedPort>

/**
 * Locks what assigning ports to these tunnels needs: the ports that the names have, and the workspaces of the
 * other names, so that two transactions cannot exceed the limit of a workspace. A claim gets any port. A
 * tunnel that a sync adds is open already, so its name must have its port, or get it.
 */
export async function lockPorts(
  tx: Tx,
  { tcpPorts, random }: Services,
  candidates: readonly PortCandidate[],
  isClaim: boolean,
): Promise<AssignPort> {
  const { range } = tcpPorts
  const ports = range && candidates.length > 0 ? await usePorts(tx, candidates) : new Map<string, number>()
  const others = candidates.filter((candidate) => !ports.has(keyOf(candidate)))
  if (range && others.length > 0) {
    await lockWorkspaces(tx, [...new Set(others.map(({ workspace_id }) => workspace_id))])
    // Another transaction may have assigned them until then.
    for (const [key, port] of await usePorts(tx, others)) ports.set(key, port)
  }
  return async (candidate) => {
    if (!range) return DISABLED
    const { port: openPort } = candidate.parsed
    const existing = ports.get(keyOf(candidate))
    if (existing !== undefined && !isClaim && openPort !== undefined && openPort !== existing)
      return otherPort(candidate.name, existing)
    const choices = isClaim
      ? () => randomPorts(range, random)
      : () => (isIn(range, openPort) ? [openPort] : [])
    const port = existing ?? (await assign(tx, candidate, tcpPorts, choices))
    if (typeof port === 'number') ports.set(keyOf(candidate), port)
    return port
  }
}

async function assign(
  tx: Tx,
  candidate: PortCandidate,
  settings: TcpPortSettings,
  choices: () => number[],
): Promise<number | RefusedPort> {
  const names = await listNamesWithPort(tx, candidate.workspace_id, settings.perWorkspace)
  if (names.length === settings.perWorkspace)
    return refuse('limit_reached', portLimitMessage(names, settings, RELEASE))
  // Another transaction may insert a free port first.
  for (const port of await listFreePorts(tx, choices()))
    if (await insertPort(tx, port, candidate)) return port
  return NO_FREE_PORT
}

const isIn = ({ first, last }: PortRange, port: number | undefined): port is number =>
  port !== undefined && first <= port && port <= last

/** Distinct ports, by a shuffle of the range that ends early. Nobody can predict which one another gets. */
function randomPorts({ first, last }: PortRange, random: Services['random']): number[] {
  const size = last - first + 1
  const count = Math.min(size, CANDIDATES)
  const numbers = Buffer.from(random(4 * count))
  const moved = new Map<number, number>()
  return Array.from({ length: count }, (_, index) => {
    const picked = index + (numbers.readUInt32LE(4 * index) % (size - index))
    const port = moved.get(picked) ?? picked
    moved.set(picked, moved.get(index) ?? index)
    return first + port
  })
}

const refuse = (reason: Refusal, message: string): RefusedPort => ({ reason, message })

const RELEASE = 'release one earlier with `adit admin port release`'

const DISABLED = refuse(
  'tcp_disabled',
  'There are no TCP tunnels here. The operator enables them with ADIT_TCP_PORTS.',
)

const NO_FREE_PORT = refuse(
  'no_port',
  'All or nearly all ports for TCP tunnels are assigned. The operator can extend ADIT_TCP_PORTS, or release ' +
    'ports with `adit admin port release`. Retry later.',
)

const otherPort = (name: string, port: number) =>
  refuse('no_port', `The port of the name "${name}" is ${port} now. Start the tunnel client again.`)
