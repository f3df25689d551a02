// Dialog that creates an API key, then shows it once.

import { Checkbox, Modal, Text, TextInput } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { TEXT_CHARS_MAX } from '../../../src/contract/limits.ts'
import { call, type Output } from '../api.ts'
import { DialogActions, Form } from '../components/forms/form.tsx'
import { codePointLength, tooManyCharacters } from '../format.ts'
import { invalidateWorkspace, workspaceQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { CreatedKeyDialog } from './created-key-dialog.tsx'
import { ExpiryField, NEVER, toExpiresAt } from './expiry-field.tsx'
import { useKeyRights } from './key-rights.ts'

interface CreateKeyDialogProps {
  opened: boolean
  onClose: () => void
  /** Called after the created key was shown and closed. */
  onDone: () => void
}

export function CreateKeyDialog({ opened, onClose, onDone }: CreateKeyDialogProps) {
  const { slug } = useWorkspace()
  const { data: workspace } = useQuery(workspaceQuery(slug))
  const [label, setLabel] = useState('')
  const { canCreateForWorkspace } = useKeyRights()
  const [isPersonal, setPersonal] = useState(false)
  const [expiry, setExpiry] = useState(NEVER)
  // The raw key stays in this state: the mutation returns nothing that a cache could keep.
  const [created, setCreated] = useState<Output<'keys.create'> | null>(null)
  const create = useMutation({
    mutationFn: async () => {
      const expiresAt = toExpiresAt(expiry)
      setCreated(
        await call('keys.create', {
          workspace: slug,
          label: label.trim(),
          personal: isPersonal || !canCreateForWorkspace,
          ...(expiresAt && { expiresAt }),
        }),
      )
    },
    onSuccess: () => {
      close()
      invalidateWorkspace(slug, 'keys')
    },
  })
  const close = () => {
    setLabel('')
    setPersonal(false)
    setExpiry(NEVER)
    create.reset()
    onClose()
  }
  const length = codePointLength(label.trim())
  const isTooLong = length > TEXT_CHARS_MAX
  const submit = () => {
    if (!isTooLong) create.mutate()
  }
  return (
    <>
      <Modal opened={opened && created === null} onClose={close} title="Create API key">
        <Form onSubmit={submit}>
          <TextInput
            label="Label"
            description="Optional. The program or machine that uses the key."
            data-autofocus
            autoComplete="off"
            value={label}
            onChange={(event) => setLabel(event.currentTarget.value)}
            error={isTooLong && tooManyCharacters(length - TEXT_CHARS_MAX)}
            inputWrapperOrder={['label', 'description', 'input', 'error']}
          />
          <Text
            size="xs"
            c={isTooLong ? 'var(--mantine-color-error)' : 'dimmed'}
            ta="right"
            className="tabular"
          >
            {length} / {TEXT_CHARS_MAX}
          </Text>
          {canCreateForWorkspace ? (
            <Checkbox
              label="Personal key"
              description="It may do what you may, and is revoked when you leave. Leave this off for machines."
              checked={isPersonal}
              onChange={(event) => setPersonal(event.currentTarget.checked)}
            />
          ) : (
            <Text size="sm">
              A personal key may do what you may, and is revoked when you leave the workspace. For a key that
              stays, for example on a server, ask an admin or owner.
            </Text>
          )}
          <ExpiryField daysMax={workspace?.policy.keyDaysMax ?? null} value={expiry} onChange={setExpiry} />
          <DialogActions mutation={create} onCancel={close} disabled={isTooLong}>
            Create key
          </DialogActions>
        </Form>
      </Modal>
      <CreatedKeyDialog created={created} onClose={() => setCreated(null)} onClosed={onDone} />
    </>
  )
}
