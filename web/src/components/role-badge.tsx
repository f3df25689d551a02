// Names and descriptions of roles.
import { Badge } from '@mantine/core'
import type { Role } from '../session.tsx'

export const roleNames: Record<Role, string> = { member: 'Member', admin: 'Admin', owner: 'Owner' }

export const roleDescriptions: Record<Role, string> = {
  member: 'Opens tunnels and sees keys, usage and the audit log',
  admin: 'Manages tunnels, API keys, invitations and members',
  owner: 'Full access, including managing owners',
}

const colors: Record<Role, string> = { member: 'gray', admin: 'teal', owner: 'amber' }

export function RoleBadge({ role }: { role: Role }) {
  return <Badge color={colors[role]}>{roleNames[role]}</Badge>
}
