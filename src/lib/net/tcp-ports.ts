// Rules for the ports of TCP tunnels, which the control plane or an edge without one assigns.
import { DAY_MS, HOUR_MS } from '../time.ts'

export interface PortRange {
  readonly first: number
  readonly last: number
}

export interface PortRules {
  /** How many ports a workspace may have. */
  readonly perWorkspace: number
  /** How long a port stays with its name after the last use. */
  readonly retentionDays: number
}

export interface TcpPortSettings extends PortRules {
  /** Undefined: there are no TCP tunnels. */
  readonly range: PortRange | undefined
}

const NAMES_SHOWN = 10

/** The interval at which ports in use are renewed. */
export const PORT_RENEWAL_MS = HOUR_MS

/** Two renewals longer than configured, so that a port never becomes free too early. */
export const portRetentionMs = ({ retentionDays }: Pick<PortRules, 'retentionDays'>) =>
  retentionDays * DAY_MS + 2 * PORT_RENEWAL_MS

/** The message for the user of the tunnel client. `remedy` is what the operator can do. */
export function portLimitMessage(names: readonly string[], { retentionDays }: PortRules, remedy: string) {
  const shown = names.slice(0, NAMES_SHOWN).join(', ') + (names.length > NAMES_SHOWN ? ', …' : '')
  return (
    `The workspace has ports for ${names.length} TCP tunnels, which is the limit. Open one of these names ` +
    `again: ${shown}. A name that is not reserved loses its port ${retentionDays} days after its last use; the ` +
    `operator can ${remedy}.`
  )
}
