// Host names of tunnels: which ones belong to this deployment.
import type { Directory } from '../directory/directory.ts'
import { findName } from '../store/tunnel-names.ts'
import type { Services } from './context.ts'

export type HostResult = { found: true; workspace: string | null } | { found: false }

const UNKNOWN: HostResult = { found: false }

/** The tunnel domain, or that of a workspace, or a name that it has reserved or used within a day. */
export async function findHost(
  { tunnelDomain, store, clock }: Pick<Services, 'tunnelDomain' | 'store' | 'clock'>,
  { findWorkspaceIds, getWorkspace }: Pick<Directory, 'findWorkspaceIds' | 'getWorkspace'>,
  host: string,
): Promise<HostResult> {
  if (host === tunnelDomain) return { found: true, workspace: null }
  const parent = `.${tunnelDomain}`
  if (!host.endsWith(parent)) return UNKNOWN
  const [slug = '', name, ...others] = host.slice(0, -parent.length).split('.').toReversed()
  if (others.length > 0) return UNKNOWN
  const workspaceId = (await findWorkspaceIds([slug])).get(slug)
  if (workspaceId === undefined || (await getWorkspace(workspaceId)).archived_at !== null) return UNKNOWN
  if (name === undefined) return { found: true, workspace: slug }
  const row = await findName(store.db, { workspace_id: workspaceId, name })
  const isTheirs = row && (row.expires_at === null || row.expires_at > clock())
  return isTheirs ? { found: true, workspace: slug } : UNKNOWN
}
