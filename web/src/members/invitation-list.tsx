import { Button, Group, Paper, Stack, Text, Title } from '@mantine/core'
import { call, type Output } from '../api.ts'
import { ConfirmDialog } from '../components/dialogs/confirm.tsx'
import { dangerOutline } from '../components/dialogs/danger-outline.ts'
import { useRemovalDialog } from '../components/dialogs/use-dialog.ts'
import { removeButtonProps } from '../components/focus.ts'
import rows from '../components/lists/rows.module.css'
import { RelativeTime } from '../components/relative-time.tsx'
import { RoleBadge } from '../components/role-badge.tsx'
import { operatorName } from '../format.ts'
import { invalidateWorkspace } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import classes from './members.module.css'

type Invitation = Output<'members.list'>['invitations'][number]

const inviterName = ({ kind, name }: Invitation['invitedBy']) =>
  kind === 'operator' ? operatorName(name) : name

export function InvitationList({ invitations }: { invitations: Invitation[] }) {
  const { slug, role: ownRole, canManage } = useWorkspace()
  const revoking = useRemovalDialog<Invitation>()
  const revoke = async () => {
    if (!revoking.item) return
    await call('invitations.revoke', { workspace: slug, id: revoking.item.id })
    await invalidateWorkspace(slug, 'members')
  }
  return (
    <Paper>
      <Title order={2} size="h5" px="lg" pt="lg">
        Pending invitations
      </Title>
      <ul className={rows.rows}>
        {invitations.map((invitation) => (
          <li key={invitation.id}>
            <Group justify="space-between" gap="sm">
              <Stack gap={2} flex="1 1 240px" miw={0}>
                <Text fw={600} size="sm" className={classes.text ?? ''}>
                  {invitation.email}
                </Text>
                <Text size="xs" c="dimmed" className={classes.text ?? ''}>
                  Invited <RelativeTime at={invitation.createdAt} /> by {inviterName(invitation.invitedBy)} ·
                  Expires <RelativeTime at={invitation.expiresAt} />
                </Text>
              </Stack>
              <Group gap="sm">
                <RoleBadge role={invitation.role} />
                {canManage && (ownRole === 'owner' || invitation.role !== 'owner') && (
                  <Button
                    {...dangerOutline}
                    {...removeButtonProps}
                    size="xs"
                    aria-label={`Revoke the invitation of ${invitation.email}`}
                    onClick={(event) => revoking.open(invitation, event.currentTarget)}
                  >
                    Revoke
                  </Button>
                )}
              </Group>
            </Group>
          </li>
        ))}
      </ul>
      <ConfirmDialog
        opened={revoking.opened}
        title="Revoke invitation?"
        actionLabel="Revoke invitation"
        onConfirm={revoke}
        onClose={revoking.close}
        successMessage={`Invitation of ${revoking.item?.email} revoked.`}
        nextFocus={revoking.nextFocus}
      >
        <Text size="sm">
          The invitation link of <strong>{revoking.item?.email}</strong> will stop working.
        </Text>
      </ConfirmDialog>
    </Paper>
  )
}
