import { Modal, Stack, Text } from '@mantine/core'
import { call } from '../api.ts'
import { queryClient } from '../queries.ts'
import { PasswordStep } from './password-step.tsx'

interface DisableTwoFactorProps {
  opened: boolean
  onClose: () => void
  onDone: () => void
}

export function DisableTwoFactor({ opened, onClose, onDone }: DisableTwoFactorProps) {
  const remove = async (password: string) => {
    await call('second-factor.remove', { password })
    await queryClient.invalidateQueries({ queryKey: ['session'] })
    onClose()
    onDone()
  }
  return (
    <Modal opened={opened} onClose={onClose} title="Remove the second factor?">
      <Stack>
        <Text size="sm">
          From then on your password alone is enough to sign in. The recovery codes work no more.
        </Text>
        <PasswordStep verb="Remove" isDangerous act={remove} onCancel={onClose} />
      </Stack>
    </Modal>
  )
}
