import { Group, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { TEXT_CHARS_MAX } from '../../../src/contract/limits.ts'
import { call } from '../api.ts'
import { Form } from '../components/form.tsx'
import { ErrorAlert } from '../components/lists/query-states.tsx'
import { SaveButton } from '../components/save-button.tsx'
import { Section } from '../components/section.tsx'
import { showToast } from '../components/toast.tsx'
import { queryClient } from '../queries.ts'
import { useSession } from '../session.tsx'

export function Name() {
  const { user } = useSession()
  const [name, setName] = useState(user.name)
  const rename = useMutation({
    mutationFn: () => call('account.rename', { name: name.trim() }),
    onSuccess: () => {
      showToast('Name saved.')
      return queryClient.invalidateQueries()
    },
  })
  return (
    <Section title="Name" description="Other members see this name. Past audit log entries keep the old one.">
      <Form onSubmit={() => rename.mutate()}>
        <TextInput
          label="Name"
          required
          maxLength={TEXT_CHARS_MAX}
          autoComplete="name"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <ErrorAlert error={rename.error} />
        <Group>
          <SaveButton variant="default" saved={user.name} edited={name.trim()} isPending={rename.isPending}>
            Save
          </SaveButton>
        </Group>
      </Form>
    </Section>
  )
}
