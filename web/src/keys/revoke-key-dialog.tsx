import { Text } from '@mantine/core'
import { call } from '../api.ts'
import { ConfirmDialog } from '../components/confirm-dialog.tsx'
import type { Key } from '../queries.ts'
import { invalidateWorkspace } from '../queries.ts'
import { useWorkspace } from '../session.tsx'

interface RevokeKeyDialogProps {
  of: Key | null
  opened: boolean
  onClose: () => void
  nextFocus: () => HTMLElement | null
}

export function RevokeKeyDialog({ of: key, opened, onClose, nextFocus }: RevokeKeyDialogProps) {
  const { slug } = useWorkspace()
  const revoke = async () => {
    if (!key) return
    await call('keys.revoke', { workspace: slug, id: key.id })
    await invalidateWorkspace(slug, 'keys')
  }
  return (
    <ConfirmDialog
      opened={opened}
      title="Revoke this key?"
      verb="Revoke key"
      act={revoke}
      onClose={onClose}
      done={`The key ${key?.label || key?.id} is revoked.`}
      nextFocus={nextFocus}
    >
      <div>
        <Text fw={600} style={{ overflowWrap: 'anywhere' }}>
          {key?.label || 'A key without a label'}
        </Text>
        <Text size="sm" c="dimmed" className="mono">
          {key?.id}
        </Text>
      </div>
      <Text size="sm">
        It takes effect at once: whatever uses this key is refused from now on. It cannot be undone.
      </Text>
    </ConfirmDialog>
  )
}
