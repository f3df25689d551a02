import { Badge, Button, Group, Paper, Select, Stack, Text, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useEffect } from 'react'
import { call } from '../api.ts'
import { ConfirmDialog } from '../components/confirm-dialog.tsx'
import { dangerOutline } from '../components/danger-outline.ts'
import { removesRow } from '../components/focus.ts'
import { ErrorAlert } from '../components/query-states.tsx'
import { RoleBadge, roleNames } from '../components/role-badge.tsx'
import { useDialog, useRemovalDialog } from '../components/use-dialog.ts'
import { formatDay } from '../format.ts'
import { invalidateWorkspace, queryClient } from '../queries.ts'
import { type Role, useWorkspace } from '../session.tsx'
import { ChangeRoleDialog, needsConfirmation, type RoleChange } from './change-role-dialog.tsx'
import type { Member } from './member.ts'
import classes from './members.module.css'

/** An admin has no say over owners, and cannot make one. */
export const assignableRoles = (mine: Role): Role[] =>
  mine === 'owner' ? ['member', 'admin', 'owner'] : ['member', 'admin']

export function MemberList({ people }: { people: Member[] }) {
  const { slug } = useWorkspace()
  const removing = useRemovalDialog<Member>()
  const remove = async () => {
    if (!removing.about) return
    await call('members.remove', { workspace: slug, id: removing.about.id })
    await invalidateWorkspace(slug, 'people')
  }
  const asking = useDialog<RoleChange>()
  const change = async ({ person, role }: RoleChange) => {
    await call('members.set-role', { workspace: slug, id: person.id, role })
    if (person.isYou) queryClient.invalidateQueries({ queryKey: ['session'] })
    await invalidateWorkspace(slug, 'people')
  }
  const setRole = useMutation({ mutationFn: change })
  const choose = (wanted: RoleChange) => {
    setRole.reset()
    if (needsConfirmation(wanted)) asking.open(wanted)
    else setRole.mutate(wanted)
  }
  // Why a change was refused is of no use once something has changed.
  const { reset } = setRole
  useEffect(() => {
    if (people) reset()
  }, [people, reset])
  return (
    <Paper>
      <Title order={2} size="h5" px="lg" pt="lg">
        Members
      </Title>
      <ul className={classes.list}>
        {people.map((person) => (
          <MemberRow
            key={person.id}
            person={person}
            change={setRole.variables?.person.id === person.id ? setRole : null}
            onRole={(role) => choose({ person, role })}
            onRemove={(button) => removing.open(person, button)}
          />
        ))}
      </ul>
      <ConfirmDialog
        opened={removing.opened}
        title="Remove from this workspace?"
        verb="Remove"
        act={remove}
        onClose={removing.close}
        done={`${removing.about?.name} is removed.`}
        nextFocus={removing.nextFocus}
      >
        <Text size="sm">
          <strong>{removing.about?.name}</strong> ({removing.about?.email}) belongs to it no more, at once.
          Keys that this person made stay: revoke them where they should not.
        </Text>
      </ConfirmDialog>
      <ChangeRoleDialog
        of={asking.about}
        opened={asking.opened}
        act={async () => asking.about && change(asking.about)}
        onClose={asking.close}
      />
    </Paper>
  )
}

interface MemberRowProps {
  person: Member
  /** The last change of this one's role that was tried. */
  change: { isPending: boolean; error: Error | null; variables: RoleChange | undefined } | null
  onRole: (role: Role) => void
  onRemove: (button: HTMLElement) => void
}

function MemberRow({ person, change, onRole, onRemove }: MemberRowProps) {
  const { role: mine, canManage } = useWorkspace()
  const mayTouch = canManage && (mine === 'owner' || person.role !== 'owner')
  return (
    <li>
      <Group justify="space-between" gap="sm">
        <Stack gap={0} flex="1 1 240px" miw={0}>
          <Group gap="xs">
            <Text fw={600} size="sm" className={classes.words ?? ''}>
              {person.name}
            </Text>
            {person.isYou && <Badge color="gray">You</Badge>}
          </Group>
          <Text size="sm" c="dimmed" className={classes.words ?? ''}>
            {person.email}
          </Text>
          <Text size="xs" c="dimmed">
            Joined {formatDay(person.joinedAt)}
          </Text>
        </Stack>
        {mayTouch ? (
          <Group gap="xs">
            <Select
              aria-label={`Role of ${person.name}`}
              w={124}
              size="sm"
              allowDeselect={false}
              comboboxProps={{ withinPortal: false }}
              disabled={change?.isPending ?? false}
              data={assignableRoles(mine).map((role) => ({ value: role, label: roleNames[role] }))}
              value={change?.isPending ? (change.variables?.role ?? null) : person.role}
              onChange={(role) => role && role !== person.role && onRole(role as Role)}
            />
            {!person.isYou && (
              <Button
                {...dangerOutline}
                {...removesRow}
                aria-label={`Remove ${person.name}`}
                onClick={(event) => onRemove(event.currentTarget)}
              >
                Remove
              </Button>
            )}
          </Group>
        ) : (
          <RoleBadge role={person.role} />
        )}
      </Group>
      {change?.error && (
        <Stack mt="sm">
          <ErrorAlert error={change.error} />
        </Stack>
      )}
    </li>
  )
}
