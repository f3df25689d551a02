// What the user may do with API keys, for buttons and texts. The server decides.
import { useQuery } from '@tanstack/react-query'
import { workspaceQuery } from '../queries.ts'
import { type Role, useWorkspace } from '../session.tsx'

const roles: Role[] = ['member', 'admin', 'owner']

export function useKeyRights() {
  const { slug, role, canManage } = useWorkspace()
  const { data } = useQuery(workspaceQuery(slug))
  const isVariantA = data?.keysCanManageKeys ?? false
  /** The roles that create keys; undefined until they are known. */
  const creators = data && roles.slice(roles.indexOf(data.policy.keyCreators))
  const canCreate = creators?.includes(role) ?? false
  return {
    creators,
    canCreate,
    /** Whether the user may also create keys of the workspace, not only personal ones. */
    canCreateForWorkspace: canCreate && canManage,
    canRequest: data !== undefined && !canCreate && !isVariantA,
    canRevokeAll: canManage,
    canRevokeOwn: canManage || isVariantA,
  }
}
