import { Button, Group, Paper, Stack, Text, Title } from '@mantine/core'
import { call, type Output } from '../api.ts'
import { makerName } from '../figures.ts'
import { Confirm } from '../parts/confirm.tsx'
import { useRemoval } from '../parts/dialog.ts'
import { removesRow } from '../parts/focus.ts'
import { quietDanger } from '../parts/quiet-danger.ts'
import { RoleBadge } from '../parts/role-name.tsx'
import { When } from '../parts/when.tsx'
import { forgetOf } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import classes from './people.module.css'

type Invitation = Output<'members.list'>['invitations'][number]

export function Invitations({ invitations }: { invitations: Invitation[] }) {
  const { slug, role: mine, mayManage } = useWorkspace()
  const revoking = useRemoval<Invitation>()
  const revoke = async () => {
    if (!revoking.about) return
    await call('invitations.revoke', { workspace: slug, id: revoking.about.id })
    await forgetOf(slug, 'people')
  }
  return (
    <Paper>
      <Title order={2} size="h5" px="lg" pt="lg">
        Open invitations
      </Title>
      <ul className={classes.list}>
        {invitations.map((invitation) => (
          <li key={invitation.id}>
            <Group justify="space-between" gap="sm">
              <Stack gap={2} flex="1 1 240px" miw={0}>
                <Text fw={600} size="sm" className={classes.words ?? ''}>
                  {invitation.email}
                </Text>
                <Text size="xs" c="dimmed" className={classes.words ?? ''}>
                  Invited <When at={invitation.createdAt} /> by {makerName(invitation.invitedBy)}; ends{' '}
                  <When at={invitation.expiresAt} />
                </Text>
              </Stack>
              <Group gap="sm">
                <RoleBadge role={invitation.role} />
                {mayManage && (mine === 'owner' || invitation.role !== 'owner') && (
                  <Button
                    {...quietDanger}
                    {...removesRow}
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
      <Confirm
        opened={revoking.opened}
        title="Revoke this invitation?"
        verb="Revoke invitation"
        act={revoke}
        onClose={revoking.close}
        done={`The invitation of ${revoking.about?.email} is revoked.`}
        nextFocus={revoking.nextFocus}
      >
        <Text size="sm">
          The link that <strong>{revoking.about?.email}</strong> was given works no more.
        </Text>
      </Confirm>
    </Paper>
  )
}
