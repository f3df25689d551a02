// Asks before a role is changed that weighs more: somebody becomes an owner, or one gives away one's own say.
import { Text } from '@mantine/core'
import { ConfirmDialog } from '../components/confirm-dialog.tsx'
import { roleNames } from '../components/role-badge.tsx'
import type { Role } from '../session.tsx'
import type { Member } from './member.ts'

export interface RoleChange {
  person: Member
  role: Role
}

const ranks: Record<Role, number> = { member: 0, admin: 1, owner: 2 }

export const needsConfirmation = ({ person, role }: RoleChange): boolean =>
  role === 'owner' || (person.isYou && ranks[role] < ranks[person.role])

interface ChangeRoleDialogProps {
  of: RoleChange | null
  opened: boolean
  act: () => Promise<unknown>
  onClose: () => void
}

export function ChangeRoleDialog({ of: change, opened, act, onClose }: ChangeRoleDialogProps) {
  const isLowering = change !== null && change.role !== 'owner'
  const name = change ? roleNames[change.role].toLowerCase() : ''
  const who = change?.person.isYou ? 'yourself' : change?.person.name
  return (
    <ConfirmDialog
      opened={opened}
      title={isLowering ? 'Lower your own role?' : `Make ${who} an owner?`}
      verb={isLowering ? `Become ${name}` : 'Make owner'}
      act={act}
      onClose={onClose}
      done={isLowering ? `You are ${name} now.` : `${change?.person.name} is an owner now.`}
      isDangerous={isLowering}
    >
      {change && <Text size="sm">{meaningOf(change)}</Text>}
    </ConfirmDialog>
  )
}

function meaningOf({ person, role }: RoleChange): string {
  if (role === 'owner')
    return `An owner may do everything here: manage keys and people, make other owners, and change or remove any owner, you too. Only an owner can take that back from ${person.name}.`
  const gone =
    role === 'member'
      ? 'You look at everything and change nothing any more: no keys, no invitations, no members'
      : 'You manage keys, invitations and members, but have no say over owners any more'
  return `${gone}. It takes effect at once, and you cannot take it back yourself: only ${
    person.role === 'owner' ? 'an owner' : 'an admin or owner'
  } can.`
}
