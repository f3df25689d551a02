// Host names of tunnels: which ones belong to this deployment.

import { findName } from '../../store/tunnels/names.ts'
import { findWorkspaceBySlug } from '../../store/workspaces.ts'
import type { EdgeWorkspaces } from '../../verification/edge-workspaces.ts'
import type { CredentialVerifier } from '../../verification/verify.ts'
import type { Services } from '../context.ts'

type HostResult = { found: true; workspace: string | null } | { found: false }

const UNKNOWN: HostResult = { found: false }

/**
 * Finds the tunnel domain, the domain of a workspace, or a name that a workspace has reserved or used within
 * a day. An edge finds names only of workspaces of which it has verified a key. It finds the domain of any
 * workspace, which needs a certificate before the first tunnel client can connect, and anyone can see whether
 * a domain has one.
 */
export async function findHost(
  { tunnelDomain, store, clock }: Pick<Services, 'tunnelDomain' | 'store' | 'clock'>,
  { findIds, getWorkspace }: Pick<EdgeWorkspaces, 'findIds'> & Pick<CredentialVerifier, 'getWorkspace'>,
  { edgeId, host }: { edgeId: string; host: string },
): Promise<HostResult> {
  if (host === tunnelDomain) return { found: true, workspace: null }
  const parent = `.${tunnelDomain}`
  if (!host.endsWith(parent)) return UNKNOWN
  const [slug = '', name, ...others] = host.slice(0, -parent.length).split('.').toReversed()
  if (others.length > 0) return UNKNOWN
  if (name === undefined) {
    const workspace = await findWorkspaceBySlug(store.db, slug)
    return workspace?.archived_at === null ? { found: true, workspace: slug } : UNKNOWN
  }
  const workspaceId = (await findIds(edgeId, [slug])).get(slug)
  if (workspaceId === undefined || (await getWorkspace(workspaceId)).archived_at !== null) return UNKNOWN
  const row = await findName(store.db, { workspace_id: workspaceId, name })
  const isUnexpired = row && (row.expires_at === null || row.expires_at > clock())
  return isUnexpired ? { found: true, workspace: slug } : UNKNOWN
}
