import { Group, Menu, Text, UnstyledButton } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { Link } from 'wouter'
import { roleNames } from '../components/role-badge.tsx'
import { CheckIcon, ChevronIcon, PlusIcon } from '../icons.tsx'
import { type Membership, useSession } from '../session.tsx'
import { CreateWorkspaceDialog } from './create-workspace-dialog.tsx'
import classes from './shell.module.css'

export function WorkspaceMenu({ current }: { current: Membership | null }) {
  const { workspaces, canCreateWorkspaces } = useSession()
  const [isCreating, creating] = useDisclosure()
  if (!current) return null
  return (
    <>
      <Menu position="bottom-start" width={280}>
        <Menu.Target>
          <UnstyledButton
            className={classes.headerButton}
            px="xs"
            py={6}
            maw="100%"
            aria-label={`Workspace: ${current.name}`}
          >
            <Group gap={4} wrap="nowrap">
              <Text span fw={600} truncate miw={0}>
                {current.name}
              </Text>
              <ChevronIcon />
            </Group>
          </UnstyledButton>
        </Menu.Target>
        <Menu.Dropdown mah={360} style={{ overflowY: 'auto' }}>
          <Menu.Label>Your workspaces</Menu.Label>
          {workspaces.map(({ slug, name, role, archive }) => (
            <Menu.Item
              key={slug}
              component={Link}
              href={`/w/${slug}`}
              rightSection={slug === current.slug ? <CheckIcon size={16} /> : null}
            >
              <Text size="sm" fw={500} lineClamp={2}>
                {name}
              </Text>
              <Text size="xs" c="dimmed" truncate>
                {archive ? 'Archived' : roleNames[role]} · {slug}
              </Text>
            </Menu.Item>
          ))}
          {canCreateWorkspaces && (
            <>
              <Menu.Divider />
              <Menu.Item leftSection={<PlusIcon />} onClick={creating.open}>
                Create workspace
              </Menu.Item>
            </>
          )}
        </Menu.Dropdown>
      </Menu>
      <CreateWorkspaceDialog opened={isCreating} onClose={creating.close} />
    </>
  )
}
