// The list of API keys, with the dialogs that rotate and revoke them.
import { Button, Group, Stack } from '@mantine/core'
import { dangerOutline } from '../components/dialogs/danger-outline.ts'
import { useDialog, useRemovalDialog } from '../components/dialogs/use-dialog.ts'
import { removeButtonProps } from '../components/focus.ts'
import { useIsPhone } from '../components/use-is-phone.ts'
import type { Key, ListedKey } from '../queries.ts'
import { KeyCard } from './key-card.tsx'
import { useKeyRights } from './key-rights.ts'
import { KeyTable } from './key-table.tsx'
import { RevokeKeyDialog } from './revoke-key-dialog.tsx'
import { RotateKeyDialog } from './rotate-key-dialog.tsx'

interface KeyListProps {
  keys: ListedKey[]
  /** Whether the user may create keys, which a rotation does. */
  canCreate: boolean
}

export function KeyList({ keys, canCreate }: KeyListProps) {
  const { canCreateForWorkspace, canRevokeAll, canRevokeOwn } = useKeyRights()
  const isPhone = useIsPhone()
  const revoking = useRemovalDialog<Key>()
  const rotating = useDialog<Key>()
  const renderActions = (key: Key) =>
    key.state === 'active' && (canRevokeAll || (canRevokeOwn && key.user?.isYou)) ? (
      <Group gap="xs" justify="flex-end" wrap="nowrap">
        {!key.successor && !key.agent && (key.user ? canCreate && key.user.isYou : canCreateForWorkspace) && (
          <Button
            size="xs"
            variant="default"
            aria-label={`Rotate ${key.label || key.id}`}
            onClick={() => rotating.open(key)}
          >
            Rotate
          </Button>
        )}
        <Button
          size="xs"
          {...dangerOutline}
          {...removeButtonProps}
          aria-label={`Revoke ${key.label || key.id}${key.successor ? ' (replaced)' : ''}`}
          onClick={(event) => revoking.open(key, event.currentTarget)}
        >
          Revoke
        </Button>
      </Group>
    ) : null
  return (
    <>
      {isPhone ? (
        <Stack component="ul" gap="sm" p={0} m={0}>
          {keys.map((key) => (
            <KeyCard key={key.id} apiKey={key} renderActions={renderActions} />
          ))}
        </Stack>
      ) : (
        <KeyTable keys={keys} withActions={canRevokeOwn} renderActions={renderActions} />
      )}
      <RotateKeyDialog apiKey={rotating.item} opened={rotating.opened} onClose={rotating.close} />
      <RevokeKeyDialog
        apiKey={revoking.item}
        opened={revoking.opened}
        onClose={revoking.close}
        nextFocus={revoking.nextFocus}
      />
    </>
  )
}
