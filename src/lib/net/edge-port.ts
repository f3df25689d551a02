/** The port of `adit edge`, unless ADIT_EDGE_PORT sets another. */
export const EDGE_PORT = 8081
