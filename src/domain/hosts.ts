// Host names of tunnels: which ones belong to this deployment.
import type { Services } from './context.ts'

export type HostResult = { found: true; workspace: string | null } | { found: false }

const UNKNOWN: HostResult = { found: false }

export async function findHost(
  { tunnelDomain }: Pick<Services, 'tunnelDomain'>,
  findWorkspaceIds: (slugs: string[]) => Promise<Map<string, string>>,
  host: string,
): Promise<HostResult> {
  if (host === tunnelDomain) return { found: true, workspace: null }
  const parent = `.${tunnelDomain}`
  if (!host.endsWith(parent)) return UNKNOWN
  const slug = host.slice(0, -parent.length)
  // A name with a dot cannot be a slug, so it needs no query.
  if (slug.includes('.')) return UNKNOWN
  return (await findWorkspaceIds([slug])).has(slug) ? { found: true, workspace: slug } : UNKNOWN
}
