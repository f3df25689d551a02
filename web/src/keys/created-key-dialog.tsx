// The one sight of a new key. It closes by its button only, so that no stray click loses the key.
import { Alert, Button, Code, Group, Modal, Stack, Text } from '@mantine/core'
import type { Output } from '../api.ts'
import { CopyBlock, CopyTextButton } from '../components/copy.tsx'
import { WarningIcon } from '../icons.tsx'
import { curlCommand } from '../overview/get-started.tsx'

interface CreatedKeyDialogProps {
  of: Output<'keys.create'> | null
  onSaved: () => void
  /** Where the focus goes on: the dialog before this one took away what had it. */
  onClosed: () => void
}

export function CreatedKeyDialog({ of: key, onSaved, onClosed }: CreatedKeyDialogProps) {
  return (
    <Modal
      opened={key !== null}
      onClose={onSaved}
      title={key?.label ? `Your new key “${key.label}”` : 'Your new key'}
      size="lg"
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
      // At once, so that nothing of the key is left while a dialog fades.
      transitionProps={{ duration: 0 }}
      returnFocus={false}
      onExitTransitionEnd={onClosed}
    >
      {key && (
        <Stack>
          <Alert color="amber" icon={<WarningIcon />}>
            This is the only time that the key is shown. Save it where your secrets are, then close this.
          </Alert>
          <Code block className="mono wrapped" fz="md" data-testid="raw-key">
            {key.token}
          </Code>
          <Group>
            <CopyTextButton text={key.token} name="Copy key" />
          </Group>
          <div>
            <Text size="sm" fw={600} mb={4}>
              Try it
            </Text>
            <CopyBlock text={curlCommand(key.token)} name="Copy command" />
          </div>
          <Group justify="flex-end">
            <Button onClick={onSaved}>I have saved it</Button>
          </Group>
        </Stack>
      )}
    </Modal>
  )
}
