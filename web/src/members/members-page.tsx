// Members and pending invitations of a workspace.
import { Button, Paper, Stack, Text, Title } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { useRef } from 'react'
import { useLocation } from 'wouter'
import { call } from '../api.ts'
import { ConfirmDialog } from '../components/dialogs/confirm.tsx'
import { dangerOutline } from '../components/dialogs/danger-outline.ts'
import { QueryResult, SkeletonRows } from '../components/lists/query-states.tsx'
import { Page } from '../components/page.tsx'
import { PlusIcon } from '../icons.tsx'
import { membersQuery, queryClient, sessionQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { InvitationList } from './invitation-list.tsx'
import { InviteDialog } from './invite-dialog.tsx'
import { MemberList } from './member-list.tsx'

export function MembersPage() {
  const { slug, name, canManage } = useWorkspace()
  const members = useQuery(membersQuery(slug))
  const [isInviting, inviting] = useDisclosure()
  const inviteRef = useRef<HTMLButtonElement>(null)
  return (
    <Page
      title="Members"
      context={name}
      description="Members open tunnels and see what is going on. Admins manage tunnels, keys and members. Owners have full access."
      actions={
        canManage && (
          <Button ref={inviteRef} leftSection={<PlusIcon />} onClick={inviting.open}>
            Invite
          </Button>
        )
      }
    >
      <QueryResult query={members} skeleton={<SkeletonRows count={4} height={64} />}>
        {({ members, invitations }) => (
          <>
            <MemberList members={members} />
            {invitations.length > 0 && <InvitationList invitations={invitations} />}
            <LeaveWorkspace isLastOwner={members.some(({ isYou, isLastOwner }) => isYou && isLastOwner)} />
          </>
        )}
      </QueryResult>
      {canManage && (
        <InviteDialog
          opened={isInviting}
          onClose={inviting.close}
          onDone={() => inviteRef.current?.focus()}
        />
      )}
    </Page>
  )
}

function LeaveWorkspace({ isLastOwner }: { isLastOwner: boolean }) {
  const { slug, name } = useWorkspace()
  const [, navigate] = useLocation()
  const [opened, dialog] = useDisclosure()
  const leave = async () => {
    await call('members.leave', { workspace: slug })
    queryClient.setQueryData(
      sessionQuery.queryKey,
      (session) =>
        session && { ...session, workspaces: session.workspaces.filter((each) => each.slug !== slug) },
    )
    navigate('/')
    queryClient.removeQueries({ queryKey: ['workspace', slug] })
    queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey })
  }
  return (
    <Paper p="lg">
      <Stack align="flex-start" gap="sm">
        <div>
          <Title order={2} size="h5">
            Leave workspace
          </Title>
          <Text id="leave-note" size="sm" c="dimmed">
            {isLastOwner
              ? 'You are the only owner. Make another member an owner before you leave.'
              : 'You need a new invitation to come back. Your personal API keys stop working.'}
          </Text>
        </div>
        <Button
          {...(!isLastOwner && dangerOutline)}
          disabled={isLastOwner}
          aria-describedby="leave-note"
          onClick={dialog.open}
        >
          Leave workspace
        </Button>
      </Stack>
      <ConfirmDialog
        opened={opened}
        title="Leave workspace?"
        actionLabel="Leave workspace"
        onConfirm={leave}
        onClose={dialog.close}
        successMessage={`You left ${name}.`}
      >
        <Text size="sm">
          You will lose access to <strong>{name}</strong>. You need a new invitation to come back.
        </Text>
      </ConfirmDialog>
    </Paper>
  )
}
