// React context: the signed-in user's session, and the workspace of the current page.
import { createContext, useContext } from 'react'
import type { Output } from './api.ts'

export type Session = Output<'session.read'>
export type Membership = Session['workspaces'][number]
export type Role = Membership['role']

/** The first workspace that is not archived, or else the first. */
export const firstUsable = (workspaces: readonly Membership[]): Membership | undefined =>
  workspaces.find(({ archive }) => archive === null) ?? workspaces[0]

const SessionContext = createContext<Session | null>(null)
const WorkspaceContext = createContext<Membership | null>(null)

export const SessionProvider = SessionContext.Provider
export const WorkspaceProvider = WorkspaceContext.Provider

export function useSession(): Session {
  const session = useContext(SessionContext)
  if (!session) throw new Error('useSession requires a SessionProvider.')
  return session
}

export function useWorkspace(): Membership & { canManage: boolean } {
  const membership = useContext(WorkspaceContext)
  if (!membership) throw new Error('useWorkspace requires a WorkspaceProvider.')
  return { ...membership, canManage: membership.role !== 'member' }
}
