// Host names of tunnels: which ones belong to this deployment.

import { findName } from '../../store/tunnels/names.ts'
import { findWorkspaceBySlug } from '../../store/workspaces.ts'
import type { Services } from '../context.ts'

type HostResult = { found: true; workspace: string | null } | { found: false }

const UNKNOWN: HostResult = { found: false }

/**
 * Finds the tunnel domain, and for workspaces of the edge's group: their domains, which need a certificate
 * before the first tunnel client can connect, and names that they have reserved or used within a day.
 */
export async function findHost(
  { tunnelDomain, store, clock }: Pick<Services, 'tunnelDomain' | 'store' | 'clock'>,
  group: string,
  host: string,
): Promise<HostResult> {
  if (host === tunnelDomain) return { found: true, workspace: null }
  const parent = `.${tunnelDomain}`
  if (!host.endsWith(parent)) return UNKNOWN
  const [slug = '', name, ...others] = host.slice(0, -parent.length).split('.').toReversed()
  if (others.length > 0) return UNKNOWN
  const workspace = await findWorkspaceBySlug(store.db, slug)
  if (workspace?.edge_group !== group || workspace.archived_at !== null) return UNKNOWN
  if (name === undefined) return { found: true, workspace: slug }
  const row = await findName(store.db, { workspace_id: workspace.id, name })
  const isUnexpired = row && (row.expires_at === null || row.expires_at > clock())
  return isUnexpired ? { found: true, workspace: slug } : UNKNOWN
}
