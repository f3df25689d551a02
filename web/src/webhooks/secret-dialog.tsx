// Shows the secret of a webhook endpoint once.
import { Alert, Anchor, Code, Group, Text } from '@mantine/core'
import { CopyTextButton } from '../components/copy.tsx'
import { OnceDialog } from '../components/dialogs/once.tsx'
import { WarningIcon } from '../icons.tsx'

interface SecretDialogProps {
  title: string
  secret: string | null
  onClose: () => void
  onClosed: () => void
}

export const SecretDialog = ({ title, secret, onClose, onClosed }: SecretDialogProps) => (
  <OnceDialog opened={secret !== null} title={title} onClose={onClose} onClosed={onClosed}>
    <Alert color="amber" icon={<WarningIcon />}>
      Store it where the receiver reads its secrets. You will not see it again.
    </Alert>
    <Code block className="mono wrapped" fz="md" data-testid="webhook-secret">
      {secret}
    </Code>
    <Group>
      <CopyTextButton text={secret ?? ''} name="Copy secret" />
    </Group>
    <Text size="sm">
      Verify requests with a{' '}
      <Anchor
        href="https://www.standardwebhooks.com"
        target="_blank"
        rel="noreferrer"
        inherit
        underline="always"
      >
        Standard Webhooks
      </Anchor>{' '}
      library.
    </Text>
  </OnceDialog>
)
