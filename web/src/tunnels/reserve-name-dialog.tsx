import { Button, Group, Modal, Text, TextInput } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { DNS_LABEL_CHARS_MAX } from '../../../src/contract/limits.ts'
import { call } from '../api.ts'
import { fieldError } from '../api-error.ts'
import { Form } from '../components/forms/form.tsx'
import { ErrorAlert } from '../components/lists/query-states.tsx'
import { showToast } from '../components/toast.tsx'
import { tooManyCharacters } from '../format.ts'
import { invalidateWorkspace, workspaceQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { HostName } from './tunnel-address.tsx'

interface ReserveNameDialogProps {
  opened: boolean
  onClose: () => void
}

export function ReserveNameDialog({ opened, onClose }: ReserveNameDialogProps) {
  return (
    <Modal opened={opened} onClose={onClose} title="Reserve a name">
      <ReserveNameForm onClose={onClose} />
    </Modal>
  )
}

function ReserveNameForm({ onClose }: { onClose: () => void }) {
  const { slug } = useWorkspace()
  const { data: workspace } = useQuery(workspaceQuery(slug))
  const [name, setName] = useState('')
  const reserve = useMutation({
    mutationFn: () => call('names.reserve', { workspace: slug, name }),
    onSuccess: () => {
      onClose()
      showToast(`Name ${name} reserved.`)
      invalidateWorkspace(slug, 'names')
    },
  })
  const problem = nameProblem(name)
  const rejected = fieldError(reserve.error, 'name')
  const submit = () => {
    if (!problem) reserve.mutate()
  }
  return (
    <Form onSubmit={submit}>
      <TextInput
        label="Name"
        description="Lower-case letters, digits and hyphens"
        data-autofocus
        required
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        value={name}
        onChange={(event) => {
          reserve.reset()
          setName(event.currentTarget.value.trim().toLowerCase())
        }}
        error={problem ?? rejected}
      />
      {workspace && name && !problem && (
        <div>
          <Text size="xs" c="dimmed" fw={600}>
            Host name
          </Text>
          <HostName name={name} host={`${name}.${workspace.tunnelBase}`} />
        </div>
      )}
      {!rejected && <ErrorAlert error={reserve.error} />}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button type="submit" loading={reserve.isPending} disabled={problem !== undefined}>
          Reserve
        </Button>
      </Group>
    </Form>
  )
}

/** A name is a DNS label. A hyphen at the end is no problem yet while the user types. */
function nameProblem(name: string): string | undefined {
  if (name.length > DNS_LABEL_CHARS_MAX) return tooManyCharacters(name.length - DNS_LABEL_CHARS_MAX)
  if (/[^a-z0-9-]/.test(name)) return 'Use only lower-case letters, digits and hyphens.'
  if (name.startsWith('-')) return 'A name cannot begin with a hyphen.'
  return undefined
}
