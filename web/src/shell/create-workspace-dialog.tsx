// Creates a workspace, where the operator lets users do that.

import { Modal, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { DNS_LABEL_CHARS_MAX, TEXT_CHARS_MAX } from '../../../src/contract/limits.ts'
import { call } from '../api.ts'
import { fieldError } from '../api-error.ts'
import { DialogActions, Form } from '../components/forms/form.tsx'
import { showToast } from '../components/toast.tsx'
import { queryClient } from '../queries.ts'

const suggestSlug = (name: string): string =>
  name
    .toLowerCase()
    .normalize('NFKD')
    .replace(/\p{Mn}/gu, '')
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, DNS_LABEL_CHARS_MAX)
    .replace(/^-|-$/g, '')

export function CreateWorkspaceDialog({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const [, navigate] = useLocation()
  const [name, setName] = useState('')
  /** Null until the user edits the slug, which follows the name until then. */
  const [typedSlug, setTypedSlug] = useState<string | null>(null)
  const slug = typedSlug ?? suggestSlug(name)
  const create = useMutation({
    mutationFn: () => call('workspaces.create', { slug, name: name.trim() }),
    onSuccess: async (created) => {
      await queryClient.invalidateQueries({ queryKey: ['session'] })
      close()
      navigate(`/w/${created.slug}`)
      showToast(`Created ${created.name}.`)
    },
  })
  const close = () => {
    setName('')
    setTypedSlug(null)
    create.reset()
    onClose()
  }
  const slugError = fieldError(create.error, 'slug')
  return (
    <Modal opened={opened} onClose={close} title="Create workspace">
      <Form onSubmit={() => create.mutate()}>
        <TextInput
          label="Workspace name"
          required
          maxLength={TEXT_CHARS_MAX}
          autoComplete="off"
          data-autofocus
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <TextInput
          label="Slug"
          description="Part of tunnel URLs, so you cannot change it later. Use lower-case letters, digits and hyphens."
          required
          maxLength={DNS_LABEL_CHARS_MAX}
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          value={slug}
          onChange={(event) => setTypedSlug(event.currentTarget.value)}
          error={slugError}
          inputWrapperOrder={['label', 'description', 'input', 'error']}
        />
        <DialogActions mutation={{ ...create, error: slugError ? null : create.error }} onCancel={close}>
          Create workspace
        </DialogActions>
      </Form>
    </Modal>
  )
}
