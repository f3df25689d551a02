// Warnings before a revocation that would leave a workspace without a key or an owner.

import { listMembers, listMemberships } from '../../store/accounts/members.ts'
import { findUserByEmail } from '../../store/accounts/users.ts'
import { countActiveKeys, findKeyById } from '../../store/keys/rows.ts'
import { rowState } from '../../store/keys/state.ts'
import { findWorkspaceBySlug, getWorkspace } from '../../store/workspaces.ts'
import type { Services } from '../context.ts'
import { isActiveOwner } from './members.ts'

/** The slug of the workspace whose only active API key this is, if it is. */
export async function findWorkspaceOfLastKey(
  { store: { db } }: Services,
  keyId: string,
): Promise<string | undefined> {
  const key = await findKeyById(db, keyId)
  if (!key || rowState(key) !== 'active' || (await countActiveKeys(db, key.workspace_id, 2)) > 1)
    return undefined
  return (await getWorkspace(db, key.workspace_id)).slug
}

/** The slugs of workspaces that have no enabled owner but this user. */
export async function findWorkspacesOfLastOwner(
  { store: { db } }: Services,
  email: string,
): Promise<string[]> {
  const user = await findUserByEmail(db, email.toLowerCase())
  if (!user || user.disabled_at !== null) return []
  const slugs: string[] = []
  for (const { slug, role } of await listMemberships(db, user.id)) {
    const workspace = role === 'owner' ? await findWorkspaceBySlug(db, slug) : undefined
    if (!workspace) continue
    const members = await listMembers(db, workspace.id)
    if (!members.some((member) => isActiveOwner(member) && member.id !== user.id)) slugs.push(slug)
  }
  return slugs
}
