// Inviting somebody, and the one sight of the link.
import { Alert, Button, Group, Modal, Radio, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { call, type Output } from '../api.ts'
import { CopyBlock } from '../components/copy.tsx'
import { ErrorAlert } from '../components/query-states.tsx'
import { roleMeanings, roleNames } from '../components/role-badge.tsx'
import { WarningIcon } from '../icons.tsx'
import { invalidateWorkspace } from '../queries.ts'
import { type Role, useWorkspace } from '../session.tsx'
import { assignableRoles } from './member-list.tsx'

interface InviteDialogProps {
  opened: boolean
  onClose: () => void
  /** After the link was seen. */
  onDone: () => void
}

export function InviteDialog({ opened, onClose, onDone }: InviteDialogProps) {
  const { slug, role: mine } = useWorkspace()
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<Role>('member')
  // As with keys: the link lives in this component and in no cache.
  const [made, setMade] = useState<Output<'invitations.create'> | null>(null)
  const invite = useMutation({
    mutationFn: async () =>
      setMade(await call('invitations.create', { workspace: slug, email: email.trim(), role })),
    onSuccess: () => {
      close()
      invalidateWorkspace(slug, 'people')
    },
  })
  const close = () => {
    setEmail('')
    setRole('member')
    invite.reset()
    onClose()
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    invite.mutate()
  }
  return (
    <>
      <Modal opened={opened && made === null} onClose={close} title="Invite somebody">
        <form onSubmit={submit}>
          <Stack>
            <TextInput
              label="E-mail"
              type="email"
              autoComplete="off"
              required
              data-autofocus
              value={email}
              onChange={(event) => setEmail(event.currentTarget.value)}
            />
            <Radio.Group label="Role" value={role} onChange={(value) => setRole(value as Role)}>
              <Stack gap="xs" mt={6}>
                {assignableRoles(mine).map((each) => (
                  <Radio key={each} value={each} label={roleNames[each]} description={roleMeanings[each]} />
                ))}
              </Stack>
            </Radio.Group>
            <ErrorAlert error={invite.error} />
            <Group justify="flex-end">
              <Button variant="default" onClick={close}>
                Cancel
              </Button>
              <Button type="submit" loading={invite.isPending}>
                Invite
              </Button>
            </Group>
          </Stack>
        </form>
      </Modal>
      <CreatedLinkDialog of={made} onDone={() => setMade(null)} onClosed={onDone} />
    </>
  )
}

interface CreatedLinkDialogProps {
  of: Output<'invitations.create'> | null
  onDone: () => void
  onClosed: () => void
}

function CreatedLinkDialog({ of: made, onDone, onClosed }: CreatedLinkDialogProps) {
  return (
    <Modal
      opened={made !== null}
      onClose={onDone}
      title="The invitation is ready"
      size="lg"
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
      transitionProps={{ duration: 0 }}
      returnFocus={false}
      onExitTransitionEnd={onClosed}
    >
      {made && (
        <Stack>
          {made.link ? (
            <>
              <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
                This server sends no mail: hand this link to {made.email} yourself.
              </Text>
              <CopyBlock text={made.link} name="Copy link" testId="invitation-link" />
              <Alert color="amber" icon={<WarningIcon />}>
                It is shown only now, works once and within 24 hours. Whoever has it can join.
              </Alert>
            </>
          ) : (
            <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
              It was sent by mail to {made.email}. Its link works once, within 24 hours.
            </Text>
          )}
          <Group justify="flex-end">
            <Button onClick={onDone}>Done</Button>
          </Group>
        </Stack>
      )}
    </Modal>
  )
}
