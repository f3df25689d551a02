// Asks for the password again before something that weighs more.
import { Button, Group, PasswordInput, Stack } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { ErrorAlert } from '../components/query-states.tsx'

interface PasswordStepProps {
  verb: string
  isDangerous?: boolean
  act: (password: string) => Promise<unknown>
  onCancel: () => void
}

export function PasswordStep({ verb, isDangerous = false, act, onCancel }: PasswordStepProps) {
  const [password, setPassword] = useState('')
  const mutation = useMutation({
    // Nothing is handed on: what the server answers may be a secret.
    mutationFn: async () => {
      await act(password)
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    mutation.mutate()
  }
  return (
    <form onSubmit={submit}>
      <Stack>
        <PasswordInput
          label="Password"
          description="To be sure that it is you"
          required
          autoComplete="current-password"
          data-autofocus
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
        />
        <ErrorAlert error={mutation.error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onCancel}>
            Cancel
          </Button>
          <Button type="submit" loading={mutation.isPending} {...(isDangerous && { color: 'red' })}>
            {verb}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
