import { Badge, Button, Group, Paper, Stack, Table, Text, VisuallyHidden } from '@mantine/core'
import type { ReactNode } from 'react'
import type { KeyState } from '../../../src/credentials/key-state.ts'
import { CopyIconButton } from '../components/copy.tsx'
import { dangerOutline } from '../components/danger-outline.ts'
import { removeButtonProps } from '../components/focus.ts'
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
    canManage && key.state === 'active' ? (
      <Button
        size="xs"
        {...dangerOutline}
        {...removeButtonProps}
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
            <KeyCard key={key.id} apiKey={key} action={revokeButton(key)} />
          ))}
        </Stack>
      ) : (
        <KeyTable keys={keys} withActions={canManage} renderAction={revokeButton} />
      )}
      <RevokeKeyDialog
        apiKey={revoking.item}
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
  renderAction: (key: Key) => ReactNode
}

function KeyTable({ keys, withActions, renderAction }: KeyTableProps) {
  return (
    <Paper>
      <Table.ScrollContainer minWidth={720} type="native">
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">Key</Table.Th>
              <Table.Th scope="col">Created</Table.Th>
              <Table.Th scope="col" className="nowrap">
                Last used
              </Table.Th>
              <Table.Th scope="col">Status</Table.Th>
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
                  <KeyLabel label={key.label} />
                  <KeyId id={key.id} />
                </Table.Th>
                <Table.Td>
                  <RelativeTime at={key.createdAt} />
                  {key.createdBy && (
                    <Text size="xs" c="dimmed">
                      by {creatorName(key.createdBy)}
                    </Text>
                  )}
                </Table.Td>
                <Table.Td className="nowrap">
                  {key.lastUsedAt ? <RelativeTime at={key.lastUsedAt} /> : 'Never'}
                </Table.Td>
                <Table.Td className="nowrap">{statusBadges[key.state](key)}</Table.Td>
                {withActions && <Table.Td ta="right">{renderAction(key)}</Table.Td>}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Paper>
  )
}

function KeyCard({ apiKey, action }: { apiKey: Key; action: ReactNode }) {
  return (
    <Paper component="li" p="md" style={{ listStyle: 'none' }}>
      <Stack gap={6}>
        <Group justify="space-between" wrap="nowrap" align="flex-start">
          <KeyLabel label={apiKey.label} />
          {statusBadges[apiKey.state](apiKey)}
        </Group>
        <KeyId id={apiKey.id} />
        <Text size="sm" c="dimmed">
          Created <RelativeTime at={apiKey.createdAt} />
          {apiKey.createdBy && ` by ${creatorName(apiKey.createdBy)}`}
        </Text>
        <Group justify="space-between">
          <Text size="sm" c="dimmed">
            {apiKey.lastUsedAt ? 'Last used ' : 'Never used'}
            {apiKey.lastUsedAt && <RelativeTime at={apiKey.lastUsedAt} />}
          </Text>
          {action}
        </Group>
      </Stack>
    </Paper>
  )
}

function KeyLabel({ label }: { label: string }) {
  if (!label)
    return (
      <Text fs="italic" c="dimmed" size="sm">
        No label
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
      <CopyIconButton text={id} name={`Copy ID ${id}`} />
    </Group>
  )
}

const statusBadges: Record<KeyState, (key: Key) => ReactNode> = {
  active: ({ expiresAt }) => <Status color="green" name="Active" prefix="Expires " at={expiresAt} />,
  revoked: ({ revokedAt }) => <Status color="gray" name="Revoked" at={revokedAt} />,
  expired: ({ expiresAt }) => <Status color="gray" name="Expired" at={expiresAt} />,
}

interface StatusProps {
  color: string
  name: string
  prefix?: string
  at: string | null
}

function Status({ color, name, prefix, at }: StatusProps) {
  if (!at) return <Badge color={color}>{name}</Badge>
  return (
    <Stack gap={2}>
      <Badge color={color}>{name}</Badge>
      <Text size="xs" c="dimmed">
        {prefix}
        <RelativeTime at={at} />
      </Text>
    </Stack>
  )
}
