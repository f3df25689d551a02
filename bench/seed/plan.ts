// The contents of a seeded database, as counts. Rows are numbered from 1 and named by their number, so that
// scenarios need not query the database.
export interface Plan {
  workspaces: number
  /** The first 20 are of workspace 1, the others are spread over the others. */
  keys: number
  /** The first so many workspaces have a year of usage, with COUNTERS_A_DAY rows for each day. */
  withHistory: number
}

/** A day's traffic came by 4 edges, each of which started 7 times. */
export const EDGES = 4
export const EPOCHS = 7
export const COUNTERS_A_DAY = EDGES * EPOCHS
export const HISTORY_DAYS = 365

/** Days that reports are about. Only workspace 1, which is never reported on, has history there. */
export const REPORTED_DAYS = 4
/** Workspaces that reports are about. */
export const REPORTED = { from: 2, count: 1_000 }

/** The values of one counter row; the total of a day is COUNTERS_A_DAY times that. */
export const COUNTER = { requests: 81_337, bytesIn: 412_900_211, bytesOut: 9_731_400_517, events: 53 }
export const PEAK_TUNNELS = 14
export const LAST_SEEN_AFTER_MS = 80_000_000

const OWN_KEYS = 20
export const DAY_MS = 86_400_000

export const today = () => Math.floor(Date.now() / DAY_MS) * DAY_MS
export const workspaceSlug = (workspace: number) => `w${workspace}`
export const workspaceId = (workspace: number) => `ws_${String(workspace).padStart(26, '0')}`

/** The number of the workspace that has a key, in SQL that both engines understand. */
export const ownerSql = (key: string, workspaces: number) =>
  workspaces === 1 ? '1' : `case when ${key} <= ${OWN_KEYS} then 1 else 2 + ${key} % ${workspaces - 1} end`

export const reportedDays = () => Array.from({ length: REPORTED_DAYS }, (_, back) => today() - back * DAY_MS)

/** The edge has verified a key of each workspace, and may report its usage. */
export const verifiedSql = `insert into edge_workspaces (edge_id, workspace_id, verified_at)
  select edges.id, workspaces.id, 1 from edges cross join workspaces`
