/** Maximum number of addresses and networks in access rules, of a tunnel name or of a client. */
export const ALLOWED_NETWORKS_MAX = 50
