// Dialog that requests an API key from the admins and owners.
import { Modal, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { TEXT_CHARS_MAX } from '../../../src/contract/limits.ts'
import { call } from '../api.ts'
import { DialogActions, Form } from '../components/forms/form.tsx'
import { invalidateWorkspace } from '../queries.ts'
import { useWorkspace } from '../session.tsx'

export function RequestKeyDialog({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const { slug } = useWorkspace()
  const [label, setLabel] = useState('')
  const request = useMutation({
    mutationFn: () => call('key-requests.create', { workspace: slug, label: label.trim() }),
    onSuccess: () => {
      close()
      return invalidateWorkspace(slug, 'keys')
    },
  })
  const close = () => {
    setLabel('')
    request.reset()
    onClose()
  }
  return (
    <Modal opened={opened} onClose={close} title="Request API key">
      <Form onSubmit={() => request.mutate()}>
        <Text size="sm">
          An admin or owner approves the request. Then you create the key here within 24 hours, or with{' '}
          <code>adit login</code>. Only you see it.
        </Text>
        <TextInput
          label="Label"
          description="Optional. The program or machine that uses the key."
          data-autofocus
          autoComplete="off"
          maxLength={TEXT_CHARS_MAX}
          value={label}
          onChange={(event) => setLabel(event.currentTarget.value)}
        />
        <DialogActions mutation={request} onCancel={close}>
          Request key
        </DialogActions>
      </Form>
    </Modal>
  )
}
