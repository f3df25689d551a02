// The button of a form that edits something saved: it can be used when a value differs, and all are valid.
import { Button, type ButtonProps } from '@mantine/core'

interface SaveButtonProps extends ButtonProps {
  /** The values as they were loaded, and as they would be saved. */
  saved: unknown
  edited: unknown
  isPending: boolean
  isValid?: boolean
}

export const SaveButton = ({ saved, edited, isPending, isValid = true, ...props }: SaveButtonProps) => (
  <Button
    type="submit"
    loading={isPending}
    disabled={!isValid || JSON.stringify(saved) === JSON.stringify(edited)}
    {...props}
  />
)
