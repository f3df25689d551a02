// Dialog that invites a user, then shows the invitation link once if no email was sent.
import { Alert, Modal, Radio, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { call, type Output } from '../api.ts'
import { CopyBlock } from '../components/copy.tsx'
import { OnceDialog } from '../components/dialogs/once.tsx'
import { DialogActions, Form } from '../components/forms/form.tsx'
import { roleDescriptions, roleNames } from '../components/role-badge.tsx'
import { showToast } from '../components/toast.tsx'
import { WarningIcon } from '../icons.tsx'
import { invalidateWorkspace } from '../queries.ts'
import { type Role, useWorkspace } from '../session.tsx'
import { assignableRoles } from './member-list.tsx'

interface InviteDialogProps {
  opened: boolean
  onClose: () => void
  /** Called after the invitation link was shown and closed. */
  onDone: () => void
}

export function InviteDialog({ opened, onClose, onDone }: InviteDialogProps) {
  const { slug, role: ownRole } = useWorkspace()
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<Role>('member')
  // The link is a secret and stays in this state, in no cache.
  const [created, setCreated] = useState<Output<'invitations.create'> | null>(null)
  const invite = useMutation({
    mutationFn: async () =>
      setCreated(await call('invitations.create', { workspace: slug, email: email.trim(), role })),
    onSuccess: () => {
      close()
      invalidateWorkspace(slug, 'members')
    },
  })
  const close = () => {
    setEmail('')
    setRole('member')
    invite.reset()
    onClose()
  }
  return (
    <>
      <Modal opened={opened && created === null} onClose={close} title="Invite a member">
        <Form onSubmit={() => invite.mutate()}>
          <TextInput
            label="Email"
            type="email"
            autoComplete="off"
            required
            data-autofocus
            value={email}
            onChange={(event) => setEmail(event.currentTarget.value)}
          />
          <Radio.Group label="Role" value={role} onChange={(value) => setRole(value as Role)}>
            <Stack gap="xs" mt={6}>
              {assignableRoles(ownRole).map((each) => (
                <Radio key={each} value={each} label={roleNames[each]} description={roleDescriptions[each]} />
              ))}
            </Stack>
          </Radio.Group>
          <DialogActions mutation={invite} onCancel={close}>
            Invite
          </DialogActions>
        </Form>
      </Modal>
      <CreatedInvitationDialog created={created} onClose={() => setCreated(null)} onClosed={onDone} />
    </>
  )
}

interface CreatedInvitationDialogProps {
  created: Output<'invitations.create'> | null
  onClose: () => void
  onClosed: () => void
}

function CreatedInvitationDialog({ created, onClose, onClosed }: CreatedInvitationDialogProps) {
  const close = () => {
    onClose()
    showToast(`${created?.email} invited.`)
  }
  return (
    <OnceDialog
      opened={created !== null}
      title={created?.link ? 'Invitation created' : 'Invitation sent'}
      onClose={close}
      onClosed={onClosed}
    >
      {created &&
        (created.link ? (
          <>
            <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
              No email was sent. Send this link to {created.email} yourself:
            </Text>
            <CopyBlock text={created.link} name="Copy link" testId="invitation-link" />
            <Alert color="amber" icon={<WarningIcon />}>
              You will not see the link again. It works once and expires in 24 hours. Anyone with the link can
              join.
            </Alert>
          </>
        ) : (
          <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
            We sent an email to {created.email}. The link in it works once and expires in 24 hours.
          </Text>
        ))}
      {created?.isLinkLocal && (
        <Alert color="red" icon={<WarningIcon />} title="The link works on this machine only">
          It leads to a loopback address, which other machines cannot reach. Ask your server admin to set
          ADIT_BASE_URL to the URL at which others reach this server, then invite {created.email} again.
        </Alert>
      )}
    </OnceDialog>
  )
}
