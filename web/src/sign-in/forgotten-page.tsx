// Asking for a link to set another password.
import { Alert, Anchor, Button, Stack, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { Link } from 'wouter'
import { call } from '../api.ts'
import { Refused } from '../parts/states.tsx'
import { forVisitors } from '../queries.ts'
import { Outside } from './outside.tsx'

export function ForgottenPage() {
  const [email, setEmail] = useState('')
  const ask = useMutation({
    mutationFn: () => call('sign-in.forgotten', { email: email.trim() }),
    ...forVisitors,
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    ask.mutate()
  }
  return (
    <Outside title="Forgotten password" lead="We send you a link with which you can choose another one.">
      {ask.isSuccess ? (
        <Alert color="teal" role="status">
          If this address is known here, a mail is on its way. Its link works once, within 24 hours.
        </Alert>
      ) : (
        <form onSubmit={submit}>
          <Stack>
            <TextInput
              label="E-mail"
              type="email"
              autoComplete="username"
              required
              value={email}
              onChange={(event) => setEmail(event.currentTarget.value)}
            />
            <Refused error={ask.error} />
            <Button type="submit" loading={ask.isPending}>
              Send link
            </Button>
          </Stack>
        </form>
      )}
      <Anchor component={Link} href="/sign-in" size="sm" ta="center">
        Back to sign-in
      </Anchor>
    </Outside>
  )
}
