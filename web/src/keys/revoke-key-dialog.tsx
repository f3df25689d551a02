import { Text } from '@mantine/core'
import { call } from '../api.ts'
import { ConfirmDialog } from '../components/dialogs/confirm.tsx'
import type { Key } from '../queries.ts'
import { invalidateWorkspace } from '../queries.ts'
import { useWorkspace } from '../session.tsx'

interface RevokeKeyDialogProps {
  apiKey: Key | null
  opened: boolean
  onClose: () => void
  nextFocus: () => HTMLElement | null
}

export function RevokeKeyDialog({ apiKey, opened, onClose, nextFocus }: RevokeKeyDialogProps) {
  const { slug } = useWorkspace()
  const revoke = async () => {
    if (!apiKey) return
    await call('keys.revoke', { workspace: slug, id: apiKey.id })
    await invalidateWorkspace(slug, 'keys')
  }
  return (
    <ConfirmDialog
      opened={opened}
      title="Revoke API key?"
      actionLabel="Revoke key"
      onConfirm={revoke}
      onClose={onClose}
      successMessage={`API key ${apiKey?.label ? `“${apiKey.label}”` : apiKey?.id} revoked.`}
      nextFocus={nextFocus}
    >
      <div>
        <Text fw={600} style={{ overflowWrap: 'anywhere' }}>
          {apiKey?.label || 'No label'}
        </Text>
        <Text size="sm" c="dimmed" className="mono">
          {apiKey?.id}
        </Text>
      </div>
      <Text size="sm">The key stops working and its tunnels close immediately. You cannot undo this.</Text>
    </ConfirmDialog>
  )
}
