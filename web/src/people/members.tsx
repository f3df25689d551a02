import { Badge, Button, Group, Paper, Select, Stack, Text, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useEffect } from 'react'
import { call } from '../api.ts'
import { longDay } from '../figures.ts'
import { Confirm } from '../parts/confirm.tsx'
import { useDialog, useRemoval } from '../parts/dialog.ts'
import { removesRow } from '../parts/focus.ts'
import { quietDanger } from '../parts/quiet-danger.ts'
import { RoleBadge, roleNames } from '../parts/role-name.tsx'
import { Refused } from '../parts/states.tsx'
import { forgetOf, queryClient } from '../queries.ts'
import { type Role, useWorkspace } from '../session.tsx'
import { ChangeRole, type RoleChange, weighsMore } from './change-role.tsx'
import classes from './people.module.css'
import type { Person } from './person.ts'

/** An admin has no say over owners, and cannot make one. */
export const rolesFor = (mine: Role): Role[] =>
  mine === 'owner' ? ['member', 'admin', 'owner'] : ['member', 'admin']

export function Members({ people }: { people: Person[] }) {
  const { slug } = useWorkspace()
  const removing = useRemoval<Person>()
  const remove = async () => {
    if (!removing.about) return
    await call('members.remove', { workspace: slug, id: removing.about.id })
    await forgetOf(slug, 'people')
  }
  const asking = useDialog<RoleChange>()
  const change = async ({ person, role }: RoleChange) => {
    await call('members.set-role', { workspace: slug, id: person.id, role })
    if (person.isYou) queryClient.invalidateQueries({ queryKey: ['session'] })
    await forgetOf(slug, 'people')
  }
  const setRole = useMutation({ mutationFn: change })
  const choose = (wanted: RoleChange) => {
    setRole.reset()
    if (weighsMore(wanted)) asking.open(wanted)
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
          <Member
            key={person.id}
            person={person}
            change={setRole.variables?.person.id === person.id ? setRole : null}
            onRole={(role) => choose({ person, role })}
            onRemove={(button) => removing.open(person, button)}
          />
        ))}
      </ul>
      <Confirm
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
      </Confirm>
      <ChangeRole
        of={asking.about}
        opened={asking.opened}
        act={async () => asking.about && change(asking.about)}
        onClose={asking.close}
      />
    </Paper>
  )
}

interface MemberProps {
  person: Person
  /** The last change of this one's role that was tried. */
  change: { isPending: boolean; error: Error | null; variables: RoleChange | undefined } | null
  onRole: (role: Role) => void
  onRemove: (button: HTMLElement) => void
}

function Member({ person, change, onRole, onRemove }: MemberProps) {
  const { role: mine, mayManage } = useWorkspace()
  const mayTouch = mayManage && (mine === 'owner' || person.role !== 'owner')
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
            Joined {longDay(person.joinedAt)}
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
              data={rolesFor(mine).map((role) => ({ value: role, label: roleNames[role] }))}
              value={change?.isPending ? (change.variables?.role ?? null) : person.role}
              onChange={(role) => role && role !== person.role && onRole(role as Role)}
            />
            {!person.isYou && (
              <Button
                {...quietDanger}
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
          <Refused error={change.error} />
        </Stack>
      )}
    </li>
  )
}
