// The databases of the figures, by name.
import type { Plan } from './plan.ts'

/** Keys, ten to a workspace; workspace 1 has a full year of usage. */
export const keysPlan = (keys: number): Plan => ({ workspaces: keys / 10, keys, withHistory: 1 })

/** A single workspace with 20 keys. */
export const alone: Plan = { workspaces: 1, keys: 20, withHistory: 1 }

/** Reports: about 10 thousand counter rows for each workspace with a history. */
export const countersPlan = (withHistory: number): Plan => ({ workspaces: 1_001, keys: 20, withHistory })
