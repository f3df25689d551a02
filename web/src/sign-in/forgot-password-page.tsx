// Requests a password reset link by email.
import { Alert, Anchor, Button, Skeleton, TextInput } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import { call } from '../api.ts'
import { Form } from '../components/forms/form.tsx'
import { ErrorAlert, QueryResult } from '../components/lists/query-states.tsx'
import { allowSignedOut, signInOptionsQuery } from '../queries.ts'
import { AuthLayout } from './auth-layout.tsx'
import { ResetByOperator } from './reset-by-operator.tsx'

export function ForgotPasswordPage() {
  const options = useQuery(signInOptionsQuery)
  return (
    <AuthLayout title="Reset your password">
      <QueryResult query={options} skeleton={<Skeleton h={36} />}>
        {({ resetByMail }) => (resetByMail ? <ResetByEmail /> : <ResetByOperator />)}
      </QueryResult>
      <Anchor component={Link} href="/sign-in" size="sm" ta="center">
        Back to sign-in
      </Anchor>
    </AuthLayout>
  )
}

function ResetByEmail() {
  const [email, setEmail] = useState('')
  const request = useMutation({
    mutationFn: () => call('sign-in.request-reset', { email: email.trim() }),
    ...allowSignedOut,
  })
  if (request.isSuccess)
    return (
      <Alert color="teal" role="status">
        If an account has this address, we sent it a reset link. The link works once and expires in 24 hours.
      </Alert>
    )
  return (
    <Form onSubmit={() => request.mutate()}>
      <TextInput
        label="Email"
        description="We will send a reset link to this address."
        type="email"
        autoComplete="username"
        required
        autoFocus
        value={email}
        onChange={(event) => setEmail(event.currentTarget.value)}
      />
      <ErrorAlert error={request.error} />
      <Button type="submit" loading={request.isPending}>
        Send reset link
      </Button>
    </Form>
  )
}
