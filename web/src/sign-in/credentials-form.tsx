import { Button, Stack, Text, TextInput } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import type { Input, Output } from '../api.ts'
import { isPasswordLength, NewPasswordInput } from '../components/new-password-input.tsx'

const TOO_SHORT = 'To go on, choose a password of at least 8 characters.'

interface CredentialsFormProps {
  facts: Output<'links.read'>
  /** Why the password that was chosen before is refused. */
  passwordError: string | undefined
  isPending: boolean
  onChosen: (chosen: Omit<Input<'links.use'>, 'link'>) => void
}

export function CredentialsForm({ facts, passwordError, isPending, onChosen }: CredentialsFormProps) {
  const [email, setEmail] = useState('')
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const [refused, setRefused] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setRefused(password)
    onChosen({
      password,
      ...(facts.isNew && { name: name.trim() }),
      ...(facts.email === null && { email: email.trim() }),
    })
  }
  return (
    <form onSubmit={submit}>
      <Stack>
        {facts.email === null ? (
          <TextInput
            label="E-mail"
            description="With it you sign in from now on"
            type="email"
            autoComplete="username"
            required
            autoFocus
            value={email}
            onChange={(event) => setEmail(event.currentTarget.value)}
          />
        ) : (
          // For password managers, which store a password with its user name.
          <input hidden readOnly name="username" autoComplete="username" value={facts.email} />
        )}
        {facts.isNew && (
          <TextInput
            label="Name"
            description="What others in the workspace see"
            autoComplete="name"
            required
            autoFocus={facts.email !== null}
            maxLength={80}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
        )}
        <NewPasswordInput
          label="Password"
          value={password}
          onChange={setPassword}
          autoFocus={facts.email !== null && !facts.isNew}
          // Another one may be good: that is said when it was tried.
          error={password === refused ? passwordError : undefined}
        />
        <Button
          type="submit"
          loading={isPending}
          disabled={!isPasswordLength(password)}
          aria-describedby={isPasswordLength(password) ? undefined : 'why-not-yet'}
        >
          {facts.purpose === 'reset' ? 'Set password' : 'Join'}
        </Button>
        {!isPasswordLength(password) && (
          <Text id="why-not-yet" size="xs" c="dimmed" ta="center">
            {TOO_SHORT}
          </Text>
        )}
      </Stack>
    </form>
  )
}
