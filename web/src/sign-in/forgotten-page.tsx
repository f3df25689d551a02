// Asking for a link to set another password.
import { Alert, Anchor, Button, Skeleton, Stack, TextInput } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { Link } from 'wouter'
import { call } from '../api.ts'
import { Loaded, Refused } from '../parts/states.tsx'
import { forVisitors, optionsQuery } from '../queries.ts'
import { AskOperator } from './ask-operator.tsx'
import { Outside } from './outside.tsx'

export function ForgottenPage() {
  const options = useQuery(optionsQuery)
  return (
    <Outside title="Forgotten password">
      <Loaded query={options} skeleton={<Skeleton h={36} />}>
        {({ resetByMail }) => (resetByMail ? <AskForMail /> : <AskOperator />)}
      </Loaded>
      <Anchor component={Link} href="/sign-in" size="sm" ta="center">
        Back to sign-in
      </Anchor>
    </Outside>
  )
}

function AskForMail() {
  const [email, setEmail] = useState('')
  const ask = useMutation({
    mutationFn: () => call('sign-in.forgotten', { email: email.trim() }),
    ...forVisitors,
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
        <Refused error={ask.error} />
        <Button type="submit" loading={ask.isPending}>
          Send link
        </Button>
      </Stack>
    </form>
  )
}
