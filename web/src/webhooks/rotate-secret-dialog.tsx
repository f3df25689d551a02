// Dialog that rotates the secret of a webhook endpoint, then shows the new one once.
import { Modal, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../api.ts'
import { restoreFocus } from '../components/focus.ts'
import { DialogActions, Form } from '../components/forms/form.tsx'
import { DEFAULT_OVERLAP, OverlapSelect } from '../components/overlap-select.tsx'
import { invalidateWorkspace } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { SecretDialog } from './secret-dialog.tsx'

interface RotateSecretDialogProps {
  id: string
  opened: boolean
  onClose: () => void
}

export function RotateSecretDialog({ id, opened, onClose }: RotateSecretDialogProps) {
  const { slug } = useWorkspace()
  const [overlap, setOverlap] = useState(DEFAULT_OVERLAP)
  const [secret, setSecret] = useState<string | null>(null)
  const rotate = useMutation({
    mutationFn: async () =>
      setSecret((await call('webhooks.rotate', { workspace: slug, id, overlap })).secret),
    onSuccess: () => {
      close()
      invalidateWorkspace(slug, 'webhooks')
    },
  })
  const close = () => {
    setOverlap(DEFAULT_OVERLAP)
    rotate.reset()
    onClose()
  }
  return (
    <>
      <Modal opened={opened && secret === null} onClose={close} title="Rotate secret">
        <Form onSubmit={() => rotate.mutate()}>
          <Text size="sm">A new secret replaces the current one.</Text>
          <OverlapSelect
            label="Sign with both secrets for"
            description="Replace the secret at the receiver by then."
            none="sign with the new secret only"
            value={overlap}
            onChange={setOverlap}
          />
          <DialogActions mutation={rotate} onCancel={close}>
            Rotate secret
          </DialogActions>
        </Form>
      </Modal>
      <SecretDialog
        title="Secret rotated"
        secret={secret}
        onClose={() => setSecret(null)}
        onClosed={() => restoreFocus()}
      />
    </>
  )
}
