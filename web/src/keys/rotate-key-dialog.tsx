// Dialog that rotates an API key, then shows the successor once.
import { Modal, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { call, type Output } from '../api.ts'
import { restoreFocus } from '../components/focus.ts'
import { DialogActions, Form } from '../components/forms/form.tsx'
import { DEFAULT_OVERLAP, OverlapSelect } from '../components/overlap-select.tsx'
import { invalidateWorkspace, type Key } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { CreatedKeyDialog } from './created-key-dialog.tsx'
import { shortKey } from './key-cells.tsx'

interface RotateKeyDialogProps {
  apiKey: Key | null
  opened: boolean
  onClose: () => void
}

export function RotateKeyDialog({ apiKey, opened, onClose }: RotateKeyDialogProps) {
  const { slug } = useWorkspace()
  const [overlap, setOverlap] = useState(DEFAULT_OVERLAP)
  // The raw key stays in this state: the mutation returns nothing that a cache could keep.
  const [created, setCreated] = useState<Output<'keys.rotate'> | null>(null)
  const rotate = useMutation({
    mutationFn: async () => {
      if (apiKey) setCreated(await call('keys.rotate', { workspace: slug, id: apiKey.id, overlap }))
    },
    onSuccess: () => {
      close()
      invalidateWorkspace(slug, 'keys')
    },
  })
  const close = () => {
    setOverlap(DEFAULT_OVERLAP)
    rotate.reset()
    onClose()
  }
  return (
    <>
      <Modal opened={opened && created === null} onClose={close} title="Rotate API key">
        <Form onSubmit={() => rotate.mutate()}>
          <div>
            <Text fw={600} style={{ overflowWrap: 'anywhere' }}>
              {apiKey?.label || 'No label'}
            </Text>
            <Text size="sm" c="dimmed" className="mono">
              {apiKey && shortKey(apiKey.lastFour)}
            </Text>
          </div>
          <Text size="sm">
            A new key with the same label{apiKey?.expiresAt && ' and lifetime'} replaces this one.
          </Text>
          <OverlapSelect
            label="Keep the old key valid for"
            description="Replace it in your programs by then. After that, it stops working and its tunnels close."
            none="revoke it now"
            value={overlap}
            onChange={setOverlap}
          />
          <DialogActions mutation={rotate} onCancel={close}>
            Rotate key
          </DialogActions>
        </Form>
      </Modal>
      <CreatedKeyDialog created={created} onClose={() => setCreated(null)} onClosed={() => restoreFocus()} />
    </>
  )
}
