// A field for a password that is being chosen, with a live hint.
import { PasswordInput } from '@mantine/core'
import { lengthOf } from '../figures.ts'

const LEAST = 8
const MOST = 128

export const isPasswordLength = (password: string): boolean =>
  lengthOf(password) >= LEAST && lengthOf(password) <= MOST

interface NewPasswordProps {
  label: string
  value: string
  onChange: (password: string) => void
}

export function NewPassword({ label, value, onChange }: NewPasswordProps) {
  const length = lengthOf(value)
  const soFar = length === 0 ? '' : length < LEAST ? `: ${LEAST - length} more to go` : ': long enough'
  return (
    <PasswordInput
      label={label}
      required
      autoComplete="new-password"
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
      description={`${LEAST} to ${MOST} characters${length > MOST ? '' : soFar}`}
      error={length > MOST && `${length - MOST} characters too many`}
    />
  )
}
