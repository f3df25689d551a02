// A form that a script submits, and the buttons at the end of a form in a dialog.
import { Button, type ButtonProps, Group, Stack } from '@mantine/core'
import type { ReactNode } from 'react'
import { ErrorAlert } from '../lists/query-states.tsx'

export const Form = ({ onSubmit, children }: { onSubmit: () => void; children: ReactNode }) => (
  <form
    onSubmit={(event) => {
      event.preventDefault()
      onSubmit()
    }}
  >
    <Stack>{children}</Stack>
  </form>
)

interface DialogActionsProps extends ButtonProps {
  mutation: { error: Error | null; isPending: boolean }
  onCancel: () => void
}

/** The error of the mutation, a button that cancels, and one that submits, whose label is the child. */
export const DialogActions = ({ mutation, onCancel, ...props }: DialogActionsProps) => (
  <>
    <ErrorAlert error={mutation.error} />
    <Group justify="flex-end">
      <Button variant="default" onClick={onCancel}>
        Cancel
      </Button>
      <Button type="submit" loading={mutation.isPending} {...props} />
    </Group>
  </>
)
