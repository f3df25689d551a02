import { Button, Stack, TextInput } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import type { Answer, Input } from '../api.ts'
import { isPasswordLength, NewPassword } from '../parts/new-password.tsx'

interface ChooseFormProps {
  facts: Answer<'links.read'>
  isPending: boolean
  onChosen: (chosen: Omit<Input<'links.use'>, 'link'>) => void
}

export function ChooseForm({ facts, isPending, onChosen }: ChooseFormProps) {
  const [email, setEmail] = useState('')
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
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
            maxLength={80}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
        )}
        <NewPassword label="Password" value={password} onChange={setPassword} />
        <Button type="submit" loading={isPending} disabled={!isPasswordLength(password)}>
          {facts.purpose === 'reset' ? 'Set password' : 'Join'}
        </Button>
      </Stack>
    </form>
  )
}
