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
  const disable = async (password: string) => {
    await call('two-factor.disable', { password })
    await queryClient.invalidateQueries({ queryKey: ['session'] })
    onClose()
    onDone()
  }
  return (
    <Modal opened={opened} onClose={onClose} title="Turn off two-factor authentication?">
      <Stack>
        <Text size="sm">
          You will sign in with only your password, and your recovery codes stop working. In workspaces that
          require two-factor authentication, your personal API keys are revoked.
        </Text>
        <PasswordStep actionLabel="Turn off" isDangerous onSubmit={disable} onCancel={onClose} />
      </Stack>
    </Modal>
  )
}
