// The workspace API: what tunnel clients, scripts and agents with an API key need beyond the public API,
// whose routes are fixed by its specification. In variant B keys can only read: `tunnels.close` returns 403.
import { readDescription } from '../description.ts'
import { findEdge } from './edge.ts'
import { listEdges } from './edges.ts'
import { listNames } from './names.ts'
import { closeTunnel, listTunnels, readTunnel } from './tunnels.ts'

export const workspaceOperations = [
  listTunnels,
  readTunnel,
  closeTunnel,
  listNames,
  listEdges,
  findEdge,
  readDescription,
] as const
