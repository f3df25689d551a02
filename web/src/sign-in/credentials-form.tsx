// Form that creates an account or sets a password, depending on the purpose of the link.

import { Button, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import { PASSWORD_CHARS, TEXT_CHARS_MAX } from '../../../src/contract/limits.ts'
import type { Input, Output } from '../api.ts'
import { Form } from '../components/forms/form.tsx'
import { isPasswordLength, NewPasswordInput } from '../components/new-password-input.tsx'

interface CredentialsFormProps {
  link: Output<'links.read'>
  /** Why the server rejected the submitted password. */
  passwordError: string | undefined
  isPending: boolean
  onSubmit: (credentials: Omit<Input<'links.redeem'>, 'link'>) => void
}

export function CredentialsForm({ link, passwordError, isPending, onSubmit }: CredentialsFormProps) {
  const [email, setEmail] = useState('')
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const [submittedPassword, setSubmittedPassword] = useState('')
  const submit = () => {
    setSubmittedPassword(password)
    onSubmit({
      password,
      ...(link.isNew && { name: name.trim() }),
      ...(link.email === null && { email: email.trim() }),
    })
  }
  const isTooShort = password !== '' && !isPasswordLength(password)
  return (
    <Form onSubmit={submit}>
      {link.email === null ? (
        <TextInput
          label="Email"
          description="You sign in with this address."
          type="email"
          autoComplete="username"
          required
          autoFocus
          value={email}
          onChange={(event) => setEmail(event.currentTarget.value)}
        />
      ) : (
        // Password managers store a password with its user name.
        <input hidden readOnly name="username" autoComplete="username" value={link.email} />
      )}
      {link.isNew && (
        <TextInput
          label="Name"
          description="Shown to other members."
          autoComplete="name"
          required
          autoFocus={link.email !== null}
          maxLength={TEXT_CHARS_MAX}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
      )}
      <NewPasswordInput
        label="Password"
        value={password}
        onChange={setPassword}
        autoFocus={link.email !== null && !link.isNew}
        // The error is about the submitted password, not about one that is being typed.
        error={password === submittedPassword ? passwordError : undefined}
      />
      <Button
        type="submit"
        loading={isPending}
        disabled={isTooShort}
        aria-describedby={isTooShort ? 'submit-note' : undefined}
      >
        {link.purpose === 'reset' ? 'Set password' : 'Create account'}
      </Button>
      {isTooShort && (
        <Text id="submit-note" size="xs" c="dimmed" ta="center">
          Enter a password of at least {PASSWORD_CHARS.min} characters to continue.
        </Text>
      )}
    </Form>
  )
}
