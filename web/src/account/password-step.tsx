// Asks for the current password before a sensitive change.
import { PasswordInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { DialogActions, Form } from '../components/forms/form.tsx'

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
  return (
    <Form onSubmit={() => mutation.mutate()}>
      <PasswordInput
        label="Password"
        description="Enter your current password to continue."
        required
        autoComplete="current-password"
        data-autofocus
        value={password}
        onChange={(event) => setPassword(event.currentTarget.value)}
      />
      <DialogActions mutation={mutation} onCancel={onCancel} {...(isDangerous && { color: 'red' })}>
        {actionLabel}
      </DialogActions>
    </Form>
  )
}
