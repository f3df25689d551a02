// Rules for the ports of TCP tunnels, which the control plane assigns, or an edge that has none.

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

const HOUR_MS = 3_600_000
const NAMES_SHOWN = 10

/** Ports in use are renewed as often. */
export const PORT_RENEWAL_MS = HOUR_MS

/** Longer by two renewals, so that a port is never free too early. */
export const portRetentionMs = ({ retentionDays }: Pick<PortRules, 'retentionDays'>) =>
  retentionDays * 24 * HOUR_MS + 2 * PORT_RENEWAL_MS

/** For the user of the tunnel client; `remedy` is what the operator can do. */
export function portLimitMessage(names: readonly string[], { retentionDays }: PortRules, remedy: string) {
  const shown = names.slice(0, NAMES_SHOWN).join(', ') + (names.length > NAMES_SHOWN ? ', …' : '')
  return (
    `The workspace has ports for ${names.length} TCP tunnels, which is the limit. Open one of these names ` +
    `again: ${shown}. A name that is not reserved loses its port ${retentionDays} days after its last use; the ` +
    `operator can ${remedy}.`
  )
}
