// Sign-in with a password, and with a code if two-factor authentication is on.

import { Button, PasswordInput, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { CODE_CHARS } from '../../../src/contract/limits.ts'
import { call } from '../api.ts'
import { Form } from '../components/forms/form.tsx'
import { ErrorAlert } from '../components/lists/query-states.tsx'
import { allowSignedOut } from '../queries.ts'

interface SignInFormProps {
  /** Fixes the address, for links that belong to one account. */
  email?: string | null
  onSignedIn: () => void
  /** Other sign-in methods, hidden while a code is asked for. */
  children?: ReactNode
}

export function SignInForm({ email: fixedEmail, onSignedIn, children }: SignInFormProps) {
  const [needsCode, setNeedsCode] = useState(false)
  if (needsCode) return <CodeForm onSignedIn={onSignedIn} onBack={() => setNeedsCode(false)} />
  return (
    <>
      <PasswordForm
        fixedEmail={fixedEmail}
        onSignedIn={onSignedIn}
        onCodeRequired={() => setNeedsCode(true)}
      />
      {children}
    </>
  )
}

interface PasswordFormProps {
  fixedEmail: string | null | undefined
  onSignedIn: () => void
  onCodeRequired: () => void
}

function PasswordForm({ fixedEmail, onSignedIn, onCodeRequired }: PasswordFormProps) {
  const [email, setEmail] = useState(fixedEmail ?? '')
  const [password, setPassword] = useState('')
  const signIn = useMutation({
    mutationFn: () => call('sign-in.password', { email: email.trim(), password }),
    onSuccess: ({ next }) => (next === 'code' ? onCodeRequired() : onSignedIn()),
    ...allowSignedOut,
  })
  return (
    <Form onSubmit={() => signIn.mutate()}>
      <TextInput
        label="Email"
        type="email"
        autoComplete="username"
        required
        readOnly={Boolean(fixedEmail)}
        autoFocus={!fixedEmail}
        value={email}
        onChange={(event) => setEmail(event.currentTarget.value)}
      />
      <PasswordInput
        label="Password"
        autoComplete="current-password"
        required
        value={password}
        onChange={(event) => setPassword(event.currentTarget.value)}
      />
      <ErrorAlert error={signIn.error} />
      <Button type="submit" loading={signIn.isPending}>
        Sign in
      </Button>
    </Form>
  )
}

export function CodeForm({ onSignedIn, onBack }: { onSignedIn: () => void; onBack: () => void }) {
  const [code, setCode] = useState('')
  const submitCode = useMutation({
    mutationFn: () => call('sign-in.code', { code: code.trim() }),
    onSuccess: onSignedIn,
    ...allowSignedOut,
  })
  return (
    <Form onSubmit={() => submitCode.mutate()}>
      <Text size="sm">Enter the code from your authenticator app, or one of your recovery codes.</Text>
      <TextInput
        label="Code"
        description="Enter recovery codes exactly as they were shown."
        // The input is not numeric, because recovery codes contain letters.
        inputMode="text"
        autoComplete="one-time-code"
        autoCapitalize="off"
        autoCorrect="off"
        spellCheck={false}
        required
        minLength={CODE_CHARS.min}
        maxLength={CODE_CHARS.max}
        autoFocus
        className="tabular"
        value={code}
        onChange={(event) => setCode(event.currentTarget.value)}
      />
      <ErrorAlert error={submitCode.error} />
      <Button type="submit" loading={submitCode.isPending}>
        Sign in
      </Button>
      <Button variant="subtle" onClick={onBack}>
        Back to sign-in
      </Button>
    </Form>
  )
}
