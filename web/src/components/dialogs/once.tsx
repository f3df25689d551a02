// A dialog with a secret that is shown once. Only its button closes it: a stray click or Escape must not lose
// the secret.
import { Button, Group, Modal, Stack } from '@mantine/core'
import type { ReactNode } from 'react'

interface OnceDialogProps {
  opened: boolean
  title: string
  onClose: () => void
  /** Moves the focus: the element that had it is gone with the previous dialog. */
  onClosed: () => void
  children: ReactNode
}

export function OnceDialog({ opened, title, onClose, onClosed, children }: OnceDialogProps) {
  return (
    <Modal
      opened={opened}
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
      {opened && (
        <Stack>
          {children}
          <Group justify="flex-end">
            <Button onClick={onClose}>Done</Button>
          </Group>
        </Stack>
      )}
    </Modal>
  )
}
