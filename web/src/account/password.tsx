import { Button, Group, PasswordInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../api.ts'
import { ApiError, fieldError } from '../api-error.ts'
import { Form } from '../components/forms/form.tsx'
import { ErrorAlert } from '../components/lists/query-states.tsx'
import { isPasswordLength, NewPasswordInput } from '../components/new-password-input.tsx'
import { Section } from '../components/section.tsx'
import { showToast } from '../components/toast.tsx'
import { queryClient, sessionsQuery } from '../queries.ts'
import { useSession } from '../session.tsx'

export function Password() {
  const { user } = useSession()
  const [current, setCurrent] = useState('')
  const [password, setPassword] = useState('')
  const change = useMutation({
    mutationFn: () => call('account.password', { current, password }),
    onSuccess: () => {
      setCurrent('')
      setPassword('')
      showToast('Password changed. All other sessions have been signed out.')
      return queryClient.invalidateQueries({ queryKey: sessionsQuery.queryKey })
    },
  })
  const isCurrentWrong = change.error instanceof ApiError && change.error.code === 'forbidden'
  const passwordError = fieldError(change.error, 'password')
  return (
    <Section title="Password" description="Changing your password signs you out of all other sessions.">
      <Form onSubmit={() => change.mutate()}>
        {/* Password managers store a password with its user name. */}
        <input hidden readOnly name="username" autoComplete="username" value={user.email} />
        <PasswordInput
          label="Current password"
          required
          autoComplete="current-password"
          value={current}
          onChange={(event) => setCurrent(event.currentTarget.value)}
          error={isCurrentWrong && 'The current password is incorrect.'}
          aria-invalid={isCurrentWrong || undefined}
        />
        <NewPasswordInput
          label="New password"
          value={password}
          onChange={setPassword}
          error={passwordError}
        />
        {!isCurrentWrong && !passwordError && <ErrorAlert error={change.error} />}
        <Group>
          <Button
            type="submit"
            variant="default"
            loading={change.isPending}
            disabled={!current || !isPasswordLength(password)}
          >
            Change password
          </Button>
        </Group>
      </Form>
    </Section>
  )
}
