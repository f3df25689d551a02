// Signing in by password, and by the code of a second factor where there is one.
import { Button, PasswordInput, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, type ReactNode, useState } from 'react'
import { call } from '../api.ts'
import { ErrorAlert } from '../components/query-states.tsx'
import { allowSignedOut } from '../queries.ts'

interface SignInFormProps {
  /** Where it must be this one. */
  email?: string | null
  onSignedIn: () => void
  /** Other ways in, until the password was given. */
  children?: ReactNode
}

export function SignInForm({ email: fixedEmail, onSignedIn, children }: SignInFormProps) {
  const [needsCode, setNeedsCode] = useState(false)
  if (needsCode) return <CodeForm onSignedIn={onSignedIn} onBack={() => setNeedsCode(false)} />
  return (
    <>
      <PasswordForm fixedEmail={fixedEmail} onSignedIn={onSignedIn} onCodeWanted={() => setNeedsCode(true)} />
      {children}
    </>
  )
}

interface PasswordFormProps {
  fixedEmail: string | null | undefined
  onSignedIn: () => void
  onCodeWanted: () => void
}

function PasswordForm({ fixedEmail, onSignedIn, onCodeWanted }: PasswordFormProps) {
  const [email, setEmail] = useState(fixedEmail ?? '')
  const [password, setPassword] = useState('')
  const signIn = useMutation({
    mutationFn: () => call('sign-in.password', { email: email.trim(), password }),
    onSuccess: ({ next }) => (next === 'code' ? onCodeWanted() : onSignedIn()),
    ...allowSignedOut,
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    signIn.mutate()
  }
  return (
    <form onSubmit={submit}>
      <Stack>
        <TextInput
          label="E-mail"
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
      </Stack>
    </form>
  )
}

export function CodeForm({ onSignedIn, onBack }: { onSignedIn: () => void; onBack: () => void }) {
  const [code, setCode] = useState('')
  const giveCode = useMutation({
    mutationFn: () => call('sign-in.code', { code: code.trim() }),
    onSuccess: onSignedIn,
    ...allowSignedOut,
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    giveCode.mutate()
  }
  return (
    <form onSubmit={submit}>
      <Stack>
        <Text size="sm">
          Your password is right. Now enter the code that your authenticator shows, or one of your recovery
          codes.
        </Text>
        <TextInput
          label="Code"
          description="Recovery codes are typed exactly as they were written."
          // Not numeric: recovery codes have letters, which the keyboard of a phone must offer.
          inputMode="text"
          autoComplete="one-time-code"
          autoCapitalize="off"
          autoCorrect="off"
          spellCheck={false}
          required
          minLength={6}
          maxLength={20}
          autoFocus
          className="figure"
          value={code}
          onChange={(event) => setCode(event.currentTarget.value)}
        />
        <ErrorAlert error={giveCode.error} />
        <Button type="submit" loading={giveCode.isPending}>
          Sign in
        </Button>
        <Button variant="subtle" onClick={onBack}>
          Start again
        </Button>
      </Stack>
    </form>
  )
}
