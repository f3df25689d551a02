// What is simulated: a million workspaces on 10,000 edges, each on two of them.
import type { Mark } from './chart.ts'
import type { Scenario } from './model.ts'

const EDGES = 10_000
const WORKSPACES = 1_000_000
const EDGES_PER_WORKSPACE = 2
/** Workspaces of an edge if all have an open tunnel. */
const PER_EDGE = (WORKSPACES * EDGES_PER_WORKSPACE) / EDGES
const MINUTE_S = 60
/** 23:45, so that a day begins in the middle of the half hour. */
const QUARTER_TO_MIDNIGHT_S = (23 * 60 + 45) * MINUTE_S
const FIVE_PAST_NOON_S = (12 * 60 + 5) * MINUTE_S
/** Between two requests to a workspace at an edge. */
const REQUEST_GAP_S = 10

const base = {
  edges: EDGES,
  hasBackPressure: true,
  requestGapS: REQUEST_GAP_S,
  startsAt: QUARTER_TO_MIDNIGHT_S,
}

/** A constant load, long enough to settle, without the begin of an hour. */
const settle = (share: number, databaseCores: number, nodes: number): Scenario => ({
  ...base,
  databaseCores,
  nodes,
  openPerEdge: () => share * PER_EDGE,
  startsAt: FIVE_PAST_NOON_S,
  seconds: 25 * MINUTE_S,
})

export interface Size {
  name: string
  open: string
  scenario: Scenario
}

export const steady: readonly Size[] = [
  { name: '2 cores, 2 nodes', open: '100,000', scenario: settle(0.1, 2, 2) },
  { name: '4 cores, 4 nodes', open: '100,000', scenario: settle(0.1, 4, 4) },
  { name: '2 cores, 2 nodes', open: '1,000,000', scenario: settle(1, 2, 2) },
  { name: '4 cores, 4 nodes', open: '1,000,000', scenario: settle(1, 4, 4) },
  { name: '8 cores, 8 nodes', open: '1,000,000', scenario: settle(1, 8, 8) },
  { name: '16 cores, 16 nodes', open: '1,000,000', scenario: settle(1, 16, 16) },
]

const RAMP_S = 8 * MINUTE_S
const MIDNIGHT_S = 15 * MINUTE_S
const OUTAGE_S = [22 * MINUTE_S, 23 * MINUTE_S] as const

/** Tunnels open from a tenth to all; then a new day, whose rows do not exist yet; then an outage. */
export const hour: Scenario = {
  ...base,
  databaseCores: 8,
  nodes: 8,
  openPerEdge: (second) => PER_EDGE * (0.1 + 0.9 * Math.min(1, second / RAMP_S)),
  seconds: 30 * MINUTE_S,
  outage: OUTAGE_S,
}

export const marks: readonly Mark[] = [
  { second: RAMP_S, label: 'all tunnels open' },
  { second: MIDNIGHT_S, label: 'midnight' },
  { second: OUTAGE_S[0], label: 'outage of a minute' },
]
