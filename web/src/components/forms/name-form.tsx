// Renames an account or a workspace.
import { Group, TextInput, type TextInputProps } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { TEXT_CHARS_MAX } from '../../../../src/contract/limits.ts'
import { queryClient } from '../../queries.ts'
import { ErrorAlert } from '../lists/query-states.tsx'
import { showToast } from '../toast.tsx'
import { Form } from './form.tsx'
import { SaveButton } from './save-button.tsx'

interface NameFormProps extends TextInputProps {
  saved: string
  onSave: (name: string) => Promise<unknown>
  /** Label of the button. */
  actionLabel: string
}

export function NameForm({ saved, onSave, actionLabel, ...input }: NameFormProps) {
  const [name, setName] = useState(saved)
  const edited = name.trim()
  const rename = useMutation({
    mutationFn: () => onSave(edited),
    onSuccess: () => {
      showToast('Name saved.')
      return queryClient.invalidateQueries()
    },
  })
  return (
    <Form onSubmit={() => rename.mutate()}>
      <TextInput
        required
        maxLength={TEXT_CHARS_MAX}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        {...input}
      />
      <ErrorAlert error={rename.error} />
      {!input.disabled && (
        <Group>
          <SaveButton variant="default" saved={saved} edited={edited} isPending={rename.isPending}>
            {actionLabel}
          </SaveButton>
        </Group>
      )}
    </Form>
  )
}
