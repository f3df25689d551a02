// Who belongs to a workspace, who is invited, and what can be done about it.
import { Button, Paper, Stack, Text, Title } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { useRef } from 'react'
import { useLocation } from 'wouter'
import { call } from '../api.ts'
import { ConfirmDialog } from '../components/confirm-dialog.tsx'
import { dangerOutline } from '../components/danger-outline.ts'
import { Page } from '../components/page.tsx'
import { QueryResult, SkeletonRows } from '../components/query-states.tsx'
import { PlusIcon } from '../icons.tsx'
import { peopleQuery, queryClient, sessionQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { InvitationList } from './invitation-list.tsx'
import { InviteDialog } from './invite-dialog.tsx'
import { MemberList } from './member-list.tsx'

export function MembersPage() {
  const { slug, name, canManage } = useWorkspace()
  const people = useQuery(peopleQuery(slug))
  const [isInviting, inviting] = useDisclosure()
  const inviteRef = useRef<HTMLButtonElement>(null)
  return (
    <Page
      title="People"
      of={name}
      lead="Members look, admins manage keys and members, owners may do everything."
      actions={
        canManage && (
          <Button ref={inviteRef} leftSection={<PlusIcon />} onClick={inviting.open}>
            Invite
          </Button>
        )
      }
    >
      <QueryResult query={people} skeleton={<SkeletonRows count={4} height={64} />}>
        {(data) => (
          <>
            <MemberList people={data.people} />
            {data.invitations.length > 0 && <InvitationList invitations={data.invitations} />}
          </>
        )}
      </QueryResult>
      <Leave />
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

function Leave() {
  const { slug, name } = useWorkspace()
  const [, navigate] = useLocation()
  const [opened, dialog] = useDisclosure()
  const leave = async () => {
    await call('members.leave', { workspace: slug })
    queryClient.setQueryData(
      sessionQuery.queryKey,
      (session) =>
        session && { ...session, workspaces: session.workspaces.filter((one) => one.slug !== slug) },
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
            Leave this workspace
          </Title>
          <Text size="sm" c="dimmed">
            You see nothing of it any more until somebody invites you again. Keys that you made stay.
          </Text>
        </div>
        <Button {...dangerOutline} onClick={dialog.open}>
          Leave workspace
        </Button>
      </Stack>
      <ConfirmDialog
        opened={opened}
        title="Leave this workspace?"
        verb="Leave"
        act={leave}
        onClose={dialog.close}
        done={`You have left ${name}.`}
      >
        <Text size="sm">
          You belong to <strong>{name}</strong> no more from now on. Only an invitation brings you back.
        </Text>
      </ConfirmDialog>
    </Paper>
  )
}
