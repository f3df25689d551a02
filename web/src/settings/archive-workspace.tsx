// Archives the workspace, after the user has typed its slug.
import { Button, Modal, Text, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { RESTORABLE_DAYS } from '../../../src/lib/credentials/archive.ts'
import { call } from '../api.ts'
import { dangerOutline } from '../components/dialogs/danger-outline.ts'
import { DialogActions, Form } from '../components/forms/form.tsx'
import { Section } from '../components/section.tsx'
import { showToast } from '../components/toast.tsx'
import { queryClient } from '../queries.ts'
import { useWorkspace } from '../session.tsx'

export function ArchiveWorkspace() {
  const [opened, dialog] = useDisclosure()
  return (
    <Section
      title="Archive workspace"
      description={`API keys stop working and tunnels close. Your server admin can restore the workspace and all its data for ${RESTORABLE_DAYS} days.`}
    >
      <Button {...dangerOutline} onClick={dialog.open}>
        Archive workspace
      </Button>
      <ArchiveDialog opened={opened} onClose={dialog.close} />
    </Section>
  )
}

function ArchiveDialog({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const { slug, name } = useWorkspace()
  const [confirm, setConfirm] = useState('')
  const archive = useMutation({
    mutationFn: () => call('settings.archive', { workspace: slug, confirm }),
    onSuccess: async () => {
      await queryClient.invalidateQueries({ queryKey: ['session'] })
      queryClient.removeQueries({ queryKey: ['workspace', slug] })
      showToast(`${name} is archived.`)
    },
  })
  const close = () => {
    setConfirm('')
    archive.reset()
    onClose()
  }
  return (
    <Modal opened={opened} onClose={close} title={`Archive ${name}?`} withCloseButton={false}>
      <Form onSubmit={() => archive.mutate()}>
        <Text size="sm">
          All API keys of this workspace stop working, its tunnels close, and its members lose access. Only
          your server admin can restore it, for {RESTORABLE_DAYS} days.
        </Text>
        <TextInput
          label={`Type ${slug} to confirm`}
          required
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          data-autofocus
          value={confirm}
          onChange={(event) => setConfirm(event.currentTarget.value)}
        />
        <DialogActions mutation={archive} onCancel={close} color="red" disabled={confirm !== slug}>
          Archive workspace
        </DialogActions>
      </Form>
    </Modal>
  )
}
