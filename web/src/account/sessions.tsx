import { Badge, Button, Group, Stack, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useLocation } from 'wouter'
import { call, type Output } from '../api.ts'
import { ConfirmDialog } from '../components/dialogs/confirm.tsx'
import { dangerOutline } from '../components/dialogs/danger-outline.ts'
import { adjacentRemoveButton, removeButtonProps, restoreFocus } from '../components/focus.ts'
import { ErrorAlert, QueryResult, SkeletonRows } from '../components/lists/query-states.tsx'
import { RelativeTime } from '../components/relative-time.tsx'
import { Section } from '../components/section.tsx'
import { showToast } from '../components/toast.tsx'
import { queryClient, sessionsQuery } from '../queries.ts'
import { browserName } from './browser-name.ts'

type SessionItem = Output<'account.sessions'>['sessions'][number]

interface EndSession {
  id: string
  nextFocus: HTMLElement | null
}

export function Sessions() {
  const sessions = useQuery(sessionsQuery)
  const end = useMutation({
    mutationFn: ({ id }: EndSession) => call('account.end-session', { id }),
    onSuccess: () => showToast('Session signed out.'),
    onSettled: async (_result, _error, { nextFocus }) => {
      await queryClient.invalidateQueries({ queryKey: sessionsQuery.queryKey })
      restoreFocus(() => nextFocus)
    },
  })
  return (
    <Section
      title="Sessions"
      description="Browsers signed in to your account. Sign out any you don’t recognize."
    >
      <Stack>
        <QueryResult query={sessions} skeleton={<SkeletonRows count={2} height={56} />}>
          {({ sessions: list }) => (
            <Stack component="ul" gap="md" m={0} p={0}>
              {list.map((session) => (
                <SessionRow
                  key={session.id}
                  session={session}
                  isEnding={end.isPending && end.variables.id === session.id}
                  onEnd={(button) => end.mutate({ id: session.id, nextFocus: adjacentRemoveButton(button) })}
                />
              ))}
            </Stack>
          )}
        </QueryResult>
        <ErrorAlert error={end.error} />
        <SignOutEverywhere />
      </Stack>
    </Section>
  )
}

interface SessionRowProps {
  session: SessionItem
  isEnding: boolean
  onEnd: (button: HTMLElement) => void
}

function SessionRow({ session, isEnding, onEnd }: SessionRowProps) {
  const browser = browserName(session.agent)
  return (
    <Group component="li" justify="space-between" gap="sm" wrap="nowrap">
      <Stack gap={0} miw={0}>
        <Group gap="xs">
          <Text size="sm" fw={600} title={session.agent} style={{ overflowWrap: 'anywhere' }}>
            {browser}
          </Text>
          {session.isThis && <Badge color="teal">This session</Badge>}
        </Group>
        <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
          {session.address} · Signed in <RelativeTime at={session.createdAt} /> · Expires{' '}
          <RelativeTime at={session.expiresAt} />
        </Text>
      </Stack>
      {!session.isThis && (
        <Button
          size="xs"
          // The text wraps instead of the button shrinking.
          style={{ flexShrink: 0 }}
          {...dangerOutline}
          {...removeButtonProps}
          loading={isEnding}
          aria-label={`Sign out ${browser} at ${session.address}`}
          onClick={(event) => onEnd(event.currentTarget)}
        >
          Sign out
        </Button>
      )}
    </Group>
  )
}

function SignOutEverywhere() {
  const [, navigate] = useLocation()
  const [opened, dialog] = useDisclosure()
  const endAll = async () => {
    await call('session.end-all')
    navigate('/sign-in')
    queryClient.clear()
  }
  return (
    <>
      <Group>
        <Button variant="default" onClick={dialog.open}>
          Sign out everywhere
        </Button>
      </Group>
      <ConfirmDialog
        opened={opened}
        title="Sign out everywhere?"
        actionLabel="Sign out everywhere"
        onConfirm={endAll}
        onClose={dialog.close}
        successMessage="Signed out everywhere."
      >
        <Text size="sm">
          This ends all your sessions, including this one. You will need to sign in again.
        </Text>
      </ConfirmDialog>
    </>
  )
}
