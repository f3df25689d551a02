import { Button, Group, Stack, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { call } from '../api.ts'
import { ErrorAlert } from '../components/query-states.tsx'
import { queryClient } from '../queries.ts'
import { useSession } from '../session.tsx'
import { Done, Section } from './section.tsx'

export function Name() {
  const { person } = useSession()
  const [name, setName] = useState(person.name)
  const rename = useMutation({
    mutationFn: () => call('account.rename', { name: name.trim() }),
    onSuccess: () => queryClient.invalidateQueries(),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    rename.mutate()
  }
  return (
    <Section title="Name" lead="What others see. The audit log keeps the name of the time.">
      <form onSubmit={submit}>
        <Stack>
          <TextInput
            label="Name"
            required
            maxLength={80}
            autoComplete="name"
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <ErrorAlert error={rename.error} />
          <Group>
            <Button type="submit" variant="default" loading={rename.isPending}>
              Save name
            </Button>
            <Done when={rename.isSuccess}>Saved</Done>
          </Group>
        </Stack>
      </form>
    </Section>
  )
}
