// Dialog that rotates the secret of a webhook endpoint, then shows the new one once.
import { Button, Group, Modal, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { call } from '../api.ts'
import { restoreFocus } from '../components/focus.ts'
import { ErrorAlert } from '../components/lists/query-states.tsx'
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
      onClose()
      invalidateWorkspace(slug, 'webhooks')
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    rotate.mutate()
  }
  return (
    <>
      <Modal opened={opened && secret === null} onClose={onClose} title="Rotate secret">
        <form onSubmit={submit}>
          <Stack>
            <Text size="sm">A new secret replaces the current one.</Text>
            <OverlapSelect
              label="Sign with both secrets for"
              description="Replace the secret at the receiver by then."
              none="sign with the new secret only"
              value={overlap}
              onChange={setOverlap}
            />
            <ErrorAlert error={rotate.error} />
            <Group justify="flex-end">
              <Button variant="default" onClick={onClose}>
                Cancel
              </Button>
              <Button type="submit" loading={rotate.isPending}>
                Rotate secret
              </Button>
            </Group>
          </Stack>
        </form>
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
