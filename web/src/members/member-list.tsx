import { Badge, Button, Group, Paper, Select, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useEffect } from 'react'
import { call } from '../api.ts'
import { ConfirmDialog } from '../components/dialogs/confirm.tsx'
import { dangerOutline } from '../components/dialogs/danger-outline.ts'
import { useDialog, useRemovalDialog } from '../components/dialogs/use-dialog.ts'
import { removeButtonProps } from '../components/focus.ts'
import { ErrorAlert } from '../components/lists/query-states.tsx'
import rows from '../components/lists/rows.module.css'
import { RoleBadge, roleNames } from '../components/role-badge.tsx'
import { showToast } from '../components/toast.tsx'
import { formatDay } from '../format.ts'
import { invalidateWorkspace, type Member, queryClient } from '../queries.ts'
import { type Role, useWorkspace } from '../session.tsx'
import {
  ChangeRoleDialog,
  needsConfirmation,
  type RoleChange,
  roleChangedMessage,
} from './change-role-dialog.tsx'
import classes from './members.module.css'

/** Admins can neither make nor change owners. */
export const assignableRoles = (ownRole: Role): Role[] =>
  ownRole === 'owner' ? ['member', 'admin', 'owner'] : ['member', 'admin']

export function MemberList({ members }: { members: Member[] }) {
  const { slug } = useWorkspace()
  const removing = useRemovalDialog<Member>()
  const remove = async () => {
    if (!removing.item) return
    await call('members.remove', { workspace: slug, id: removing.item.id })
    await invalidateWorkspace(slug, 'members')
  }
  const confirming = useDialog<RoleChange>()
  const applyChange = async (change: RoleChange) => {
    await call('members.set-role', { workspace: slug, id: change.member.id, role: change.role })
    showToast(roleChangedMessage(change))
    if (change.member.isYou) queryClient.invalidateQueries({ queryKey: ['session'] })
    await invalidateWorkspace(slug, 'members')
  }
  return (
    <Paper>
      <ul className={rows.rows} aria-label="Members">
        {members.map((member) => (
          <MemberRow
            key={member.id}
            member={member}
            applyChange={applyChange}
            onConfirm={confirming.open}
            onRemove={(button) => removing.open(member, button)}
          />
        ))}
      </ul>
      <ConfirmDialog
        opened={removing.opened}
        title="Remove member?"
        actionLabel="Remove"
        onConfirm={remove}
        onClose={removing.close}
        successMessage={`${removing.item?.name} removed.`}
        nextFocus={removing.nextFocus}
      >
        <Text size="sm">
          <strong>{removing.item?.name}</strong> ({removing.item?.email}) loses access to this workspace
          immediately, and their personal API keys stop working. API keys of the workspace that they created
          stay active; revoke them separately if needed.
        </Text>
      </ConfirmDialog>
      <ChangeRoleDialog
        change={confirming.item}
        opened={confirming.opened}
        onConfirm={async () => confirming.item && applyChange(confirming.item)}
        onClose={confirming.close}
      />
    </Paper>
  )
}

interface MemberRowProps {
  member: Member
  applyChange: (change: RoleChange) => Promise<void>
  /** Asks before it applies the change. */
  onConfirm: (change: RoleChange) => void
  onRemove: (button: HTMLElement) => void
}

function MemberRow({ member, applyChange, onConfirm, onRemove }: MemberRowProps) {
  const { role: ownRole, canManage } = useWorkspace()
  const isEditable = canManage && (ownRole === 'owner' || member.role !== 'owner')
  const setRole = useMutation({ mutationFn: applyChange })
  const { reset } = setRole
  // An error is outdated once somebody has changed the role.
  useEffect(() => {
    if (member.role) reset()
  }, [member.role, reset])
  const chooseRole = (role: Role) => {
    if (role === member.role) return
    const change = { member, role }
    setRole.reset()
    if (needsConfirmation(change)) onConfirm(change)
    else setRole.mutate(change)
  }
  return (
    <li>
      <Group justify="space-between" gap="sm">
        <Stack gap={0} flex="1 1 240px" miw={0}>
          <Group gap="xs">
            <Text fw={600} size="sm" className={classes.text ?? ''}>
              {member.name}
            </Text>
            {member.isYou && <Badge color="gray">You</Badge>}
          </Group>
          <Text size="sm" c="dimmed" className={classes.text ?? ''}>
            {member.email}
          </Text>
          <Text size="xs" c="dimmed">
            Joined {formatDay(member.joinedAt)}
          </Text>
          {isEditable && member.isLastOwner && (
            <Text size="xs" c="dimmed">
              The only owner’s role cannot be changed. Make another member an owner first.
            </Text>
          )}
        </Stack>
        {isEditable ? (
          <Group gap="xs">
            <Select
              aria-label={`Role of ${member.name}`}
              w={124}
              size="sm"
              allowDeselect={false}
              // Mantine fades disabled inputs, but the role must stay readable.
              styles={{ input: { opacity: 1 } }}
              comboboxProps={{ withinPortal: false }}
              disabled={member.isLastOwner || setRole.isPending}
              data={assignableRoles(ownRole).map((role) => ({ value: role, label: roleNames[role] }))}
              value={setRole.isPending ? setRole.variables.role : member.role}
              onChange={(role) => role && chooseRole(role as Role)}
            />
            {!member.isYou && (
              <Button
                {...dangerOutline}
                {...removeButtonProps}
                aria-label={`Remove ${member.name}`}
                onClick={(event) => onRemove(event.currentTarget)}
              >
                Remove
              </Button>
            )}
          </Group>
        ) : (
          <RoleBadge role={member.role} />
        )}
      </Group>
      {setRole.error && (
        <Stack mt="sm">
          <ErrorAlert error={setRole.error} />
        </Stack>
      )}
    </li>
  )
}
