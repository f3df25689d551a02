// A field for a password that is being chosen, with a live hint.
import { PasswordInput } from '@mantine/core'
import { codePointLength } from '../format.ts'

const LEAST = 8
const MOST = 128

export const isPasswordLength = (password: string): boolean =>
  codePointLength(password) >= LEAST && codePointLength(password) <= MOST

interface NewPasswordInputProps {
  label: string
  value: string
  onChange: (password: string) => void
  /** Why the server has refused it. */
  error?: string | undefined
  autoFocus?: boolean
}

export function NewPasswordInput({
  label,
  value,
  onChange,
  error,
  autoFocus = false,
}: NewPasswordInputProps) {
  const length = codePointLength(value)
  const soFar = length === 0 ? '' : length < LEAST ? `: ${LEAST - length} more to go` : ': long enough'
  const wrong = length > MOST ? `${length - MOST} characters too many` : error
  return (
    <PasswordInput
      label={label}
      required
      autoFocus={autoFocus}
      autoComplete="new-password"
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      description={`${LEAST} to ${MOST} characters${length > MOST ? '' : soFar}`}
      error={wrong}
      // Mantine marks other fields by itself, but not this one.
      aria-invalid={wrong ? true : undefined}
    />
  )
}
