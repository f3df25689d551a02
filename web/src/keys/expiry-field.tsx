// The field of the create dialog for when the key expires: a number of days, a date, or never.
import { NativeSelect, Stack, TextInput } from '@mantine/core'
import { DAY_MS } from '../../../src/lib/time.ts'

export interface Expiry {
  /** A number of days, `date` or `never`. */
  choice: string
  /** The last day of the key in UTC, if the choice is a date. */
  date: string
}

export const NEVER: Expiry = { choice: 'never', date: '' }

const choices = [
  { value: 'never', label: 'Never' },
  { value: '7', label: 'In 7 days' },
  { value: '30', label: 'In 30 days' },
  { value: '90', label: 'In 90 days' },
  { value: '365', label: 'In 365 days' },
  { value: 'date', label: 'On a date' },
]

/** The choices that the policy of the workspace allows. With a limit, `never` means the maximum. */
const allowedChoices = (daysMax: number | null) =>
  daysMax === null
    ? choices
    : [
        { value: NEVER.choice, label: `In ${daysMax} ${daysMax === 1 ? 'day' : 'days'} (maximum)` },
        ...choices.filter(({ value }) => value === 'date' || Number(value) < daysMax),
      ]

/** The timestamp for the API; undefined for the maximum lifetime of the policy. */
export function toExpiresAt({ choice, date }: Expiry): string | undefined {
  if (choice === 'never') return undefined
  if (choice === 'date') return new Date(Date.parse(date) + DAY_MS).toISOString()
  return new Date(Date.now() + Number(choice) * DAY_MS).toISOString()
}

const dayAfter = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 10)

interface ExpiryFieldProps {
  /** The maximum lifetime by the policy of the workspace. */
  daysMax: number | null
  value: Expiry
  onChange: (value: Expiry) => void
}

export function ExpiryField({ daysMax, value, onChange }: ExpiryFieldProps) {
  return (
    <Stack gap="xs">
      <NativeSelect
        label="Expires"
        description="After this, the key stops working and its tunnels close."
        data={allowedChoices(daysMax)}
        value={value.choice}
        onChange={(event) => onChange({ ...value, choice: event.currentTarget.value })}
        inputWrapperOrder={['label', 'description', 'input', 'error']}
      />
      {value.choice === 'date' && (
        <TextInput
          label="Last day"
          description="The key expires at the end of this day (UTC)."
          type="date"
          required
          min={dayAfter(0)}
          {...(daysMax !== null && { max: dayAfter(daysMax) })}
          value={value.date}
          onChange={(event) => onChange({ ...value, date: event.currentTarget.value })}
        />
      )}
    </Stack>
  )
}
