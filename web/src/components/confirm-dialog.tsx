// Asks before something is done that cannot be taken back.
import { Button, Group, Modal, Stack } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { restoreFocus } from './focus.ts'
import { ErrorAlert } from './query-states.tsx'
import { announce } from './toast.tsx'

interface ConfirmDialogProps {
  opened: boolean
  title: string
  /** What the button does, e.g. "Revoke key". */
  verb: string
  children: ReactNode
  act: () => Promise<unknown>
  onClose: () => void
  /** What is said when it is done. */
  done?: string
  /** What gets the focus when the act took away what had it. */
  nextFocus?: () => HTMLElement | null
  isDangerous?: boolean
}

export function ConfirmDialog(props: ConfirmDialogProps) {
  const { opened, title, verb, children, act, onClose, done, nextFocus, isDangerous = true } = props
  const close = () => {
    mutation.reset()
    onClose()
  }
  const mutation = useMutation({
    mutationFn: act,
    onSuccess: () => {
      close()
      restoreFocus(nextFocus)
      if (done) announce(done)
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
            {verb}
          </Button>
        </Group>
      </Stack>
    </Modal>
  )
}
