// Roles in words.
import { Badge } from '@mantine/core'
import type { Role } from '../session.tsx'

export const roleNames: Record<Role, string> = { member: 'Member', admin: 'Admin', owner: 'Owner' }

export const roleMeanings: Record<Role, string> = {
  member: 'Looks at everything, changes nothing',
  admin: 'Manages API keys, invitations and members',
  owner: 'May do everything, also make other owners',
}

const colours: Record<Role, string> = { member: 'gray', admin: 'teal', owner: 'amber' }

export function RoleBadge({ role }: { role: Role }) {
  return <Badge color={colours[role]}>{roleNames[role]}</Badge>
}
