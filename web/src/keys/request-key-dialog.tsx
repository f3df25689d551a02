// Dialog that requests an API key from the admins and owners.
import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { TEXT_CHARS_MAX } from '../../../src/contract/limits.ts'
import { call } from '../api.ts'
import { ErrorAlert } from '../components/lists/query-states.tsx'
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
  const submit = (event: FormEvent) => {
    event.preventDefault()
    request.mutate()
  }
  return (
    <Modal opened={opened} onClose={close} title="Request API key">
      <form onSubmit={submit}>
        <Stack>
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
          <ErrorAlert error={request.error} />
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
            <Button type="submit" loading={request.isPending}>
              Request key
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
