// Confirms role changes with lasting effect: making another member an owner, and lowering one's own role.
import { Text } from '@mantine/core'
import { ConfirmDialog } from '../components/dialogs/confirm.tsx'
import { roleNames } from '../components/role-badge.tsx'
import type { Member } from '../queries.ts'
import type { Role } from '../session.tsx'

export interface RoleChange {
  member: Member
  role: Role
}

const ranks: Record<Role, number> = { member: 0, admin: 1, owner: 2 }

export const needsConfirmation = ({ member, role }: RoleChange): boolean =>
  role === 'owner' || (member.isYou && ranks[role] < ranks[member.role])

export const roleChangedMessage = ({ member, role }: RoleChange): string =>
  `${member.isYou ? 'Your role' : `Role of ${member.name}`} changed to ${roleNames[role].toLowerCase()}.`

interface ChangeRoleDialogProps {
  change: RoleChange | null
  opened: boolean
  onConfirm: () => Promise<unknown>
  onClose: () => void
}

export function ChangeRoleDialog({ change, opened, onConfirm, onClose }: ChangeRoleDialogProps) {
  const isLowering = change !== null && change.role !== 'owner'
  const roleName = change ? roleNames[change.role].toLowerCase() : ''
  return (
    <ConfirmDialog
      opened={opened}
      title={isLowering ? `Change your role to ${roleName}?` : `Make ${change?.member.name} an owner?`}
      actionLabel={isLowering ? `Change to ${roleName}` : 'Make owner'}
      onConfirm={onConfirm}
      onClose={onClose}
      isDangerous={isLowering}
    >
      {change && <Text size="sm">{consequence(change)}</Text>}
    </ConfirmDialog>
  )
}

function consequence({ member, role }: RoleChange): string {
  if (role === 'owner')
    return (
      'Owners have full access: they manage API keys and members, and can change or remove other owners, ' +
      `including you. Only an owner can change the role of ${member.name} again.`
    )
  const lost =
    role === 'member'
      ? 'You will have read-only access, and can no longer manage tunnels, API keys, invitations or members.'
      : 'You will still manage tunnels, API keys, invitations and members, but no longer owners.'
  const restoredBy = member.role === 'owner' ? 'an owner' : 'an admin or owner'
  return `${lost} The change takes effect immediately. Only ${restoredBy} can undo it.`
}
