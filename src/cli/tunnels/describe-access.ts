// How commands print who may use a tunnel.

/** `--json` has all. */
const NETWORKS_SHOWN = 2

interface Access {
  hasPassword: boolean
  allowIp: readonly string[]
}

export const describeAccess = ({ hasPassword, allowIp }: Access): string =>
  [
    ...(hasPassword ? ['password'] : []),
    ...allowIp.slice(0, NETWORKS_SHOWN),
    ...(allowIp.length > NETWORKS_SHOWN ? [`${allowIp.length - NETWORKS_SHOWN} more`] : []),
  ].join(', ') || 'open'
