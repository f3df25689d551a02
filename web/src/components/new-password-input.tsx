// Input for a new password, with a live hint about its length.

import { PasswordInput } from '@mantine/core'
import { PASSWORD_CHARS } from '../../../src/contract/limits.ts'
import { codePointLength, tooManyCharacters } from '../format.ts'

const { min: MIN_LENGTH, max: MAX_LENGTH } = PASSWORD_CHARS

export const isPasswordLength = (password: string): boolean =>
  codePointLength(password) >= MIN_LENGTH && codePointLength(password) <= MAX_LENGTH

interface NewPasswordInputProps {
  label: string
  value: string
  onChange: (password: string) => void
  /** Why the server rejected the password. */
  error?: string | undefined
  autoFocus?: boolean
  /** Whether an empty input keeps the current password. */
  keepsCurrent?: boolean
  /** The length as the server counts it. */
  countLength?: (password: string) => number
}

export function NewPasswordInput({
  label,
  value,
  onChange,
  error,
  autoFocus = false,
  keepsCurrent = false,
  countLength = codePointLength,
}: NewPasswordInputProps) {
  const length = countLength(value)
  const missing = MIN_LENGTH - length
  const hint = length > 0 && missing > 0 ? ` (${missing} more needed)` : ''
  const keep = keepsCurrent && length === 0 ? '. Leave empty to keep the current password.' : ''
  const problem = length > MAX_LENGTH ? tooManyCharacters(length - MAX_LENGTH) : error
  return (
    <PasswordInput
      label={label}
      required={!keepsCurrent}
      autoFocus={autoFocus}
      autoComplete="new-password"
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      description={`${MIN_LENGTH} to ${MAX_LENGTH} characters${hint}${keep}`}
      error={problem}
      // Mantine sets it on other inputs, but not on PasswordInput.
      aria-invalid={problem ? true : undefined}
    />
  )
}
