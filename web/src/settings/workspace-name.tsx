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
import { useWorkspace } from '../session.tsx'

export function WorkspaceName() {
  const { slug, name: savedName, role } = useWorkspace()
  const [name, setName] = useState(savedName)
  const rename = useMutation({
    mutationFn: () => call('settings.rename', { workspace: slug, name: name.trim() }),
    onSuccess: () => {
      showToast('Name saved.')
      return queryClient.invalidateQueries()
    },
  })
  const isOwner = role === 'owner'
  return (
    <Section
      title="Name"
      description={`Members and API clients see this name. The slug ${slug} and tunnel URLs stay the same.`}
    >
      <Form onSubmit={() => rename.mutate()}>
        <TextInput
          label="Workspace name"
          required
          maxLength={TEXT_CHARS_MAX}
          autoComplete="off"
          disabled={!isOwner}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <ErrorAlert error={rename.error} />
        {isOwner && (
          <Group>
            <SaveButton variant="default" saved={savedName} edited={name.trim()} isPending={rename.isPending}>
              Save name
            </SaveButton>
          </Group>
        )}
      </Form>
    </Section>
  )
}
