import { Badge, Button, Group, Paper, Select, Stack, Text, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type Answer, call } from '../api.ts'
import { longDay } from '../figures.ts'
import { Confirm } from '../parts/confirm.tsx'
import { useDialog } from '../parts/dialog.ts'
import { quietDanger } from '../parts/quiet-danger.ts'
import { RoleBadge, roleNames } from '../parts/role-name.tsx'
import { Refused } from '../parts/states.tsx'
import { forgetOf, queryClient } from '../queries.ts'
import { type Role, useWorkspace } from '../session.tsx'
import classes from './people.module.css'

type Person = Answer<'people.list'>['people'][number]

/** An admin has no say over owners, and cannot make one. */
export const rolesFor = (mine: Role): Role[] =>
  mine === 'owner' ? ['member', 'admin', 'owner'] : ['member', 'admin']

export function Members({ people }: { people: Person[] }) {
  const { slug } = useWorkspace()
  const removing = useDialog<Person>()
  const remove = async () => {
    if (!removing.about) return
    await call('people.remove', { workspace: slug, id: removing.about.id })
    await forgetOf(slug, 'people')
  }
  return (
    <Paper>
      <Title order={2} size="h5" px="lg" pt="lg">
        Members
      </Title>
      <ul className={classes.list}>
        {people.map((person) => (
          <Member key={person.id} person={person} onRemove={() => removing.open(person)} />
        ))}
      </ul>
      <Confirm
        opened={removing.opened}
        title="Remove from this workspace?"
        verb="Remove"
        act={remove}
        onClose={removing.close}
      >
        <Text size="sm">
          <strong>{removing.about?.name}</strong> ({removing.about?.email}) belongs to it no more, at once.
          Keys that this person made stay: revoke them where they should not.
        </Text>
      </Confirm>
    </Paper>
  )
}

function Member({ person, onRemove }: { person: Person; onRemove: () => void }) {
  const { slug, role: mine, mayManage } = useWorkspace()
  const mayTouch = mayManage && (mine === 'owner' || person.role !== 'owner')
  const setRole = useMutation({
    mutationFn: (role: Role) => call('people.set-role', { workspace: slug, id: person.id, role }),
    onSuccess: () => {
      if (person.isYou) queryClient.invalidateQueries({ queryKey: ['session'] })
      return forgetOf(slug, 'people')
    },
  })
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
              disabled={setRole.isPending}
              data={rolesFor(mine).map((role) => ({ value: role, label: roleNames[role] }))}
              value={setRole.isPending ? setRole.variables : person.role}
              onChange={(role) => role && role !== person.role && setRole.mutate(role as Role)}
            />
            {!person.isYou && (
              <Button {...quietDanger} aria-label={`Remove ${person.name}`} onClick={onRemove}>
                Remove
              </Button>
            )}
          </Group>
        ) : (
          <RoleBadge role={person.role} />
        )}
      </Group>
      {setRole.error && (
        <Stack mt="sm">
          <Refused error={setRole.error} />
        </Stack>
      )}
    </li>
  )
}
