// Asks before something is done that cannot be taken back.
import { Button, Group, Modal, Stack } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Refused } from './states.tsx'

interface ConfirmProps {
  opened: boolean
  title: string
  /** What the button does, e.g. "Revoke key". */
  verb: string
  children: ReactNode
  act: () => Promise<unknown>
  onClose: () => void
}

export function Confirm({ opened, title, verb, children, act, onClose }: ConfirmProps) {
  const close = () => {
    mutation.reset()
    onClose()
  }
  const mutation = useMutation({ mutationFn: act, onSuccess: close })
  return (
    <Modal opened={opened} onClose={close} title={title} withCloseButton={false}>
      <Stack>
        {children}
        <Refused error={mutation.error} />
        <Group justify="flex-end">
          <Button variant="default" data-autofocus onClick={close}>
            Cancel
          </Button>
          <Button color="red" loading={mutation.isPending} onClick={() => mutation.mutate()}>
            {verb}
          </Button>
        </Group>
      </Stack>
    </Modal>
  )
}
