// Assigns the ports of TCP tunnels. A port belongs to one name of one workspace in the whole installation
// until it expires or the operator releases it: programs that connect to it trust that it leads to the same
// server as before.
import type { RejectionReason } from '../../../contract/edge/tunnels.ts'
import { type PortRange, portLimitMessage, type TcpPortSettings } from '../../../lib/net/tcp-ports.ts'
import type { Tx } from '../../store/engine/store.ts'
import { type NameId, nameKey } from '../../store/tunnels/names.ts'
import { insertPort, listFreePorts, listNamesWithPort, usePorts } from '../../store/tunnels/tcp-ports.ts'
import { lockWorkspaces } from '../../store/workspaces.ts'
import type { Services } from '../context.ts'
import type { ParsedTunnel, RejectedTunnel } from './reported.ts'

/** Number of ports that are tried for a name, so that the cost of a claim is limited. */
const CANDIDATES = 256

interface PortCandidate extends NameId {
  parsed: ParsedTunnel
}

/** The port of an admitted tunnel, or why it gets none. */
type AssignPort = (candidate: PortCandidate) => Promise<number | RejectedTunnel>

/**
 * Locks the assigned ports of these names, and the workspaces of names without one, so that two transactions
 * cannot exceed the limit of a workspace. A claim gets any free port. A tunnel that a sync adds is open
 * already, so its name must have the port that is open, or get it.
 */
export async function lockPorts(
  tx: Tx,
  { limits: { tcpPorts }, random }: Services,
  candidates: readonly PortCandidate[],
  isClaim: boolean,
): Promise<AssignPort> {
  const { range } = tcpPorts
  const ports = range && candidates.length > 0 ? await usePorts(tx, candidates) : new Map<string, number>()
  const unassigned = candidates.filter((candidate) => !ports.has(nameKey(candidate)))
  if (range && unassigned.length > 0) {
    await lockWorkspaces(tx, [...new Set(unassigned.map(({ workspace_id }) => workspace_id))])
    // Another transaction may have assigned them while this one waited for the lock.
    // It may deadlock with a third that uses one and waits for the workspace; the store retries it then.
    for (const [key, port] of await usePorts(tx, unassigned)) ports.set(key, port)
  }
  return async (candidate) => {
    if (!range) return DISABLED
    const { port: openPort } = candidate.parsed
    const existing = ports.get(nameKey(candidate))
    if (existing !== undefined && !isClaim && openPort !== undefined && openPort !== existing)
      return differentPort(candidate.name, existing)
    const insert = () =>
      isClaim
        ? insertAnyPort(tx, candidate, randomPorts(range, random))
        : insertOpenPort(tx, candidate, range)
    const port = existing ?? (await checkPortLimit(tx, candidate, tcpPorts)) ?? (await insert())
    if (typeof port === 'number') ports.set(nameKey(candidate), port)
    return port
  }
}

/** Undefined if the workspace may have another port. */
async function checkPortLimit(
  tx: Tx,
  { workspace_id }: PortCandidate,
  settings: TcpPortSettings,
): Promise<RejectedTunnel | undefined> {
  const names = await listNamesWithPort(tx, workspace_id, settings.perWorkspace)
  if (names.length < settings.perWorkspace) return undefined
  return reject('limit_reached', portLimitMessage(names, settings, RELEASE))
}

async function insertAnyPort(tx: Tx, candidate: PortCandidate, choices: number[]) {
  // Another transaction may insert a free port first.
  for (const port of await listFreePorts(tx, choices)) if (await insertPort(tx, port, candidate)) return port
  return NO_FREE_PORT
}

async function insertOpenPort(tx: Tx, candidate: PortCandidate, { first, last }: PortRange) {
  const { port } = candidate.parsed
  if (port === undefined) return NOT_REPORTED
  if (port < first || port > last) return portOutOfRange(port)
  return (await insertPort(tx, port, candidate)) ? port : portTaken(port)
}

/** Distinct ports. A partial Fisher-Yates shuffle, so that nobody can predict a port. */
function randomPorts({ first, last }: PortRange, random: Services['random']): number[] {
  const size = last - first + 1
  const count = Math.min(size, CANDIDATES)
  const numbers = Buffer.from(random(4 * count))
  const swapped = new Map<number, number>()
  return Array.from({ length: count }, (_, index) => {
    const picked = index + (numbers.readUInt32LE(4 * index) % (size - index))
    const port = swapped.get(picked) ?? picked
    swapped.set(picked, swapped.get(index) ?? index)
    return first + port
  })
}

const reject = (reason: RejectionReason, message: string): RejectedTunnel => ({ reason, message })

const RELEASE = 'release one earlier with `adit admin port release`'

const DISABLED = reject(
  'tcp_disabled',
  'TCP tunnels are disabled on this server. The operator enables them with ADIT_TCP_PORTS.',
)

const NO_FREE_PORT = reject(
  'no_port',
  'All or nearly all ports for TCP tunnels are assigned. The operator can extend ADIT_TCP_PORTS, or release ' +
    'ports with `adit admin port release`. Retry later.',
)

const NOT_REPORTED = reject(
  'no_port',
  'The edge has not reported the port at which the TCP tunnel is open. Start the tunnel client again.',
)

const differentPort = (name: string, port: number) =>
  reject('no_port', `The port of the name "${name}" is ${port} now. Start the tunnel client again.`)

const portOutOfRange = (port: number) =>
  reject(
    'no_port',
    `The tunnel is open at port ${port}, which is not in ADIT_TCP_PORTS. Start the tunnel client again to ` +
      'get another port, or ask the operator to extend ADIT_TCP_PORTS.',
  )

/** Does not say whose port it is: that may be another workspace. */
const portTaken = (port: number) =>
  reject(
    'no_port',
    `The tunnel is open at port ${port}, which belongs to another name. Start the tunnel client again to ` +
      'get another port.',
  )
