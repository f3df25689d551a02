// Confirmation dialog for actions that cannot be undone.
import { Button, Group, Modal, Stack } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { restoreFocus } from '../focus.ts'
import { ErrorAlert } from '../lists/query-states.tsx'
import { showToast } from '../toast.tsx'

interface ConfirmDialogProps {
  opened: boolean
  title: string
  /** Label of the button, e.g. "Revoke key". */
  actionLabel: string
  children: ReactNode
  onConfirm: () => Promise<unknown>
  onClose: () => void
  /** Toast after success. */
  successMessage?: string
  /** Receives the focus if the action removed the element that had it. */
  nextFocus?: () => HTMLElement | null
  isDangerous?: boolean
}

export function ConfirmDialog(props: ConfirmDialogProps) {
  const { opened, title, actionLabel, children, onConfirm, onClose, successMessage, nextFocus } = props
  const { isDangerous = true } = props
  const close = () => {
    mutation.reset()
    onClose()
  }
  const mutation = useMutation({
    mutationFn: onConfirm,
    onSuccess: () => {
      close()
      restoreFocus(nextFocus)
      if (successMessage) showToast(successMessage)
    },
  })
  return (
    <Modal opened={opened} onClose={close} title={title} withCloseButton={false}>
      <Stack>
        {children}
        <ErrorAlert error={mutation.error} />
        <Group justify="flex-end">
          <Button variant="default" data-autofocus onClick={close}>
            Cancel
          </Button>
          <Button
            {...(isDangerous && { color: 'red' })}
            loading={mutation.isPending}
            onClick={() => mutation.mutate()}
          >
            {actionLabel}
          </Button>
        </Group>
      </Stack>
    </Modal>
  )
}
