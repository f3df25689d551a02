import { Button, Group, PasswordInput, Stack } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { call } from '../api.ts'
import { ApiError, fieldError } from '../api-error.ts'
import { isPasswordLength, NewPasswordInput } from '../components/new-password-input.tsx'
import { ErrorAlert } from '../components/query-states.tsx'
import { queryClient, sessionsQuery } from '../queries.ts'
import { useSession } from '../session.tsx'
import { Done, Section } from './section.tsx'

export function Password() {
  const { person } = useSession()
  const [current, setCurrent] = useState('')
  const [password, setPassword] = useState('')
  const change = useMutation({
    mutationFn: () => call('account.password', { current, password }),
    onSuccess: () => {
      setCurrent('')
      setPassword('')
      return queryClient.invalidateQueries({ queryKey: sessionsQuery.queryKey })
    },
  })
  const isWrong = change.error instanceof ApiError && change.error.code === 'forbidden'
  const unfit = fieldError(change.error, 'password')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    change.mutate()
  }
  return (
    <Section title="Password" lead="Changing it signs you out everywhere else.">
      <form onSubmit={submit}>
        <Stack>
          {/* For password managers, which store a password with its user name. */}
          <input hidden readOnly name="username" autoComplete="username" value={person.email} />
          <PasswordInput
            label="Current password"
            required
            autoComplete="current-password"
            value={current}
            onChange={(event) => setCurrent(event.currentTarget.value)}
            error={isWrong && 'The current password is wrong.'}
            aria-invalid={isWrong || undefined}
          />
          <NewPasswordInput label="New password" value={password} onChange={setPassword} error={unfit} />
          {!isWrong && !unfit && <ErrorAlert error={change.error} />}
          <Group>
            <Button
              type="submit"
              variant="default"
              loading={change.isPending}
              disabled={!current || !isPasswordLength(password)}
            >
              Change password
            </Button>
            <Done when={change.isSuccess}>Changed</Done>
          </Group>
        </Stack>
      </form>
    </Section>
  )
}
