// Asks for the current password before a sensitive change.
import { Button, Group, PasswordInput, Stack } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { ErrorAlert } from '../components/lists/query-states.tsx'

interface PasswordStepProps {
  actionLabel: string
  isDangerous?: boolean
  onSubmit: (password: string) => Promise<unknown>
  onCancel: () => void
}

export function PasswordStep({ actionLabel, isDangerous = false, onSubmit, onCancel }: PasswordStepProps) {
  const [password, setPassword] = useState('')
  const mutation = useMutation({
    // Returns nothing: the response may contain secrets, which must not be kept as the result of a mutation.
    mutationFn: async () => {
      await onSubmit(password)
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
          description="Enter your current password to continue."
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
            {actionLabel}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
