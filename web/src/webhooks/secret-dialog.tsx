// Shows the secret of a webhook endpoint once. Only its button closes the dialog.
import { Alert, Anchor, Button, Code, Group, Modal, Stack, Text } from '@mantine/core'
import { CopyTextButton } from '../components/copy.tsx'
import { WarningIcon } from '../icons.tsx'

interface SecretDialogProps {
  title: string
  secret: string | null
  onClose: () => void
  /** Moves the focus: the element that had it is gone with the previous dialog. */
  onClosed: () => void
}

export function SecretDialog({ title, secret, onClose, onClosed }: SecretDialogProps) {
  return (
    <Modal
      opened={secret !== null}
      onClose={onClose}
      title={title}
      size="lg"
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
      // No transition: the secret must not stay in the document while the dialog fades out.
      transitionProps={{ duration: 0 }}
      returnFocus={false}
      onExitTransitionEnd={onClosed}
    >
      {secret && (
        <Stack>
          <Alert color="amber" icon={<WarningIcon />}>
            Store it where the receiver reads its secrets. It is not shown again.
          </Alert>
          <Code block className="mono wrapped" fz="md" data-testid="webhook-secret">
            {secret}
          </Code>
          <Group>
            <CopyTextButton text={secret} name="Copy secret" />
          </Group>
          <Text size="sm">
            Verify each request with it, by a library of{' '}
            <Anchor
              href="https://www.standardwebhooks.com"
              target="_blank"
              rel="noreferrer"
              inherit
              underline="always"
            >
              Standard Webhooks
            </Anchor>
            .
          </Text>
          <Group justify="flex-end">
            <Button onClick={onClose}>Done</Button>
          </Group>
        </Stack>
      )}
    </Modal>
  )
}
