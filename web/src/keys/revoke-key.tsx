import { Text } from '@mantine/core'
import { call } from '../api.ts'
import { Confirm } from '../parts/confirm.tsx'
import type { Key } from '../queries.ts'
import { forgetOf } from '../queries.ts'
import { useWorkspace } from '../session.tsx'

interface RevokeKeyProps {
  of: Key | null
  opened: boolean
  onClose: () => void
  nextFocus: () => HTMLElement | null
}

export function RevokeKey({ of: key, opened, onClose, nextFocus }: RevokeKeyProps) {
  const { slug } = useWorkspace()
  const revoke = async () => {
    if (!key) return
    await call('keys.revoke', { workspace: slug, id: key.id })
    await forgetOf(slug, 'keys')
  }
  return (
    <Confirm
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
    </Confirm>
  )
}
