import { Badge, Button, Group, Paper, Stack, Table, Text, VisuallyHidden } from '@mantine/core'
import type { ReactNode } from 'react'
import { isActive, type KeyState, keyState } from '../../../src/credentials/key-state.ts'
import { CopyIconButton } from '../components/copy.tsx'
import { dangerOutline } from '../components/danger-outline.ts'
import { removesRow } from '../components/focus.ts'
import { RelativeTime } from '../components/relative-time.tsx'
import { useRemovalDialog } from '../components/use-dialog.ts'
import { useIsPhone } from '../components/use-is-phone.ts'
import { creatorName } from '../format.ts'
import type { Key } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { RevokeKeyDialog } from './revoke-key-dialog.tsx'

export function KeyList({ keys }: { keys: Key[] }) {
  const { canManage } = useWorkspace()
  const isPhone = useIsPhone()
  const revoking = useRemovalDialog<Key>()
  const revokeButton = (key: Key) =>
    canManage && isActive(key) ? (
      <Button
        size="xs"
        {...dangerOutline}
        {...removesRow}
        aria-label={`Revoke ${key.label || key.id}`}
        onClick={(event) => revoking.open(key, event.currentTarget)}
      >
        Revoke
      </Button>
    ) : null
  return (
    <>
      {isPhone ? (
        <Stack component="ul" gap="sm" p={0} m={0}>
          {keys.map((key) => (
            <KeyCard key={key.id} of={key} action={revokeButton(key)} />
          ))}
        </Stack>
      ) : (
        <KeyTable keys={keys} withActions={canManage} actionOf={revokeButton} />
      )}
      <RevokeKeyDialog
        of={revoking.about}
        opened={revoking.opened}
        onClose={revoking.close}
        nextFocus={revoking.nextFocus}
      />
    </>
  )
}

interface KeyTableProps {
  keys: Key[]
  withActions: boolean
  actionOf: (key: Key) => React.ReactNode
}

function KeyTable({ keys, withActions, actionOf }: KeyTableProps) {
  return (
    <Paper>
      <Table.ScrollContainer minWidth={720} type="native">
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">Label and id</Table.Th>
              <Table.Th scope="col">Created</Table.Th>
              <Table.Th scope="col">Last used</Table.Th>
              <Table.Th scope="col">State</Table.Th>
              {withActions && (
                <Table.Th scope="col">
                  <VisuallyHidden>Actions</VisuallyHidden>
                </Table.Th>
              )}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {keys.map((key) => (
              <Table.Tr key={key.id}>
                <Table.Th scope="row" fw={400}>
                  <Label of={key} />
                  <KeyId id={key.id} />
                </Table.Th>
                <Table.Td>
                  <RelativeTime at={key.createdAt} />
                  <Text size="xs" c="dimmed">
                    by {creatorName(key.createdBy ?? 'somebody unrecorded')}
                  </Text>
                </Table.Td>
                <Table.Td className="unbroken">
                  {key.lastUsedAt ? <RelativeTime at={key.lastUsedAt} /> : 'Never'}
                </Table.Td>
                <Table.Td className="unbroken">
                  <State of={key} />
                </Table.Td>
                {withActions && <Table.Td ta="right">{actionOf(key)}</Table.Td>}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Paper>
  )
}

function KeyCard({ of: key, action }: { of: Key; action: React.ReactNode }) {
  return (
    <Paper component="li" p="md" style={{ listStyle: 'none' }}>
      <Stack gap={6}>
        <Group justify="space-between" wrap="nowrap" align="flex-start">
          <Label of={key} />
          <State of={key} />
        </Group>
        <KeyId id={key.id} />
        <Text size="sm" c="dimmed">
          Created <RelativeTime at={key.createdAt} /> by {creatorName(key.createdBy ?? 'somebody unrecorded')}
        </Text>
        <Group justify="space-between">
          <Text size="sm" c="dimmed">
            {key.lastUsedAt ? 'Last used ' : 'Never used'}
            {key.lastUsedAt && <RelativeTime at={key.lastUsedAt} />}
          </Text>
          {action}
        </Group>
      </Stack>
    </Paper>
  )
}

function Label({ of: { label } }: { of: Key }) {
  if (!label)
    return (
      <Text fs="italic" c="dimmed" size="sm">
        no label
      </Text>
    )
  return (
    <Text fw={600} size="sm" style={{ overflowWrap: 'anywhere' }}>
      {label}
    </Text>
  )
}

function KeyId({ id }: { id: string }) {
  return (
    <Group gap={4} wrap="nowrap">
      <Text size="xs" c="dimmed" className="mono">
        {id}
      </Text>
      <CopyIconButton text={id} name={`Copy id ${id}`} />
    </Group>
  )
}

const stateBadges: Record<KeyState, (key: Key) => ReactNode> = {
  active: () => <Badge color="green">Active</Badge>,
  revoked: ({ revokedAt }) => (
    <Stack gap={2}>
      <Badge color="gray">Revoked</Badge>
      <Text size="xs" c="dimmed">
        {revokedAt && <RelativeTime at={revokedAt} />}
      </Text>
    </Stack>
  ),
}

const State = ({ of: key }: { of: Key }) => stateBadges[keyState(key)](key)
