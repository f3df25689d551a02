// Asking for a link to set another password.
import { Alert, Anchor, Button, Skeleton, Stack, TextInput } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { Link } from 'wouter'
import { call } from '../api.ts'
import { ErrorAlert, QueryResult } from '../components/query-states.tsx'
import { allowSignedOut, optionsQuery } from '../queries.ts'
import { AuthLayout } from './auth-layout.tsx'
import { ResetByOperator } from './reset-by-operator.tsx'

export function ForgotPasswordPage() {
  const options = useQuery(optionsQuery)
  return (
    <AuthLayout title="Forgotten password">
      <QueryResult query={options} skeleton={<Skeleton h={36} />}>
        {({ resetByMail }) => (resetByMail ? <AskForMail /> : <ResetByOperator />)}
      </QueryResult>
      <Anchor component={Link} href="/sign-in" size="sm" ta="center">
        Back to sign-in
      </Anchor>
    </AuthLayout>
  )
}

function AskForMail() {
  const [email, setEmail] = useState('')
  const ask = useMutation({
    mutationFn: () => call('sign-in.forgotten', { email: email.trim() }),
    ...allowSignedOut,
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    ask.mutate()
  }
  if (ask.isSuccess)
    return (
      <Alert color="teal" role="status">
        If this address is known here, a mail is on its way. Its link works once, within 24 hours.
      </Alert>
    )
  return (
    <form onSubmit={submit}>
      <Stack>
        <TextInput
          label="E-mail"
          description="We send you a link with which you can choose another password"
          type="email"
          autoComplete="username"
          required
          autoFocus
          value={email}
          onChange={(event) => setEmail(event.currentTarget.value)}
        />
        <ErrorAlert error={ask.error} />
        <Button type="submit" loading={ask.isPending}>
          Send link
        </Button>
      </Stack>
    </form>
  )
}
