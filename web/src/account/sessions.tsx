import { Badge, Button, Group, Stack, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useLocation } from 'wouter'
import { call, type Output } from '../api.ts'
import { ConfirmDialog } from '../components/confirm-dialog.tsx'
import { dangerOutline } from '../components/danger-outline.ts'
import { nextRowAction, removesRow, restoreFocus } from '../components/focus.ts'
import { ErrorAlert, QueryResult, SkeletonRows } from '../components/query-states.tsx'
import { RelativeTime } from '../components/relative-time.tsx'
import { announce } from '../components/toast.tsx'
import { queryClient, sessionsQuery } from '../queries.ts'
import { browserName } from './browser-name.ts'
import { Section } from './section.tsx'

type OneSession = Output<'account.sessions'>['sessions'][number]

interface Ending {
  id: string
  /** What gets the focus afterwards. */
  next: HTMLElement | null
}

export function Sessions() {
  const sessions = useQuery(sessionsQuery)
  const end = useMutation({
    mutationFn: ({ id }: Ending) => call('account.end-session', { id }),
    onSuccess: () => announce('The session has ended.'),
    onSettled: async (_done, _error, { next }) => {
      await queryClient.invalidateQueries({ queryKey: sessionsQuery.queryKey })
      restoreFocus(() => next)
    },
  })
  return (
    <Section title="Sessions" lead="Where you are signed in. End whatever you do not know.">
      <Stack>
        <QueryResult query={sessions} skeleton={<SkeletonRows count={2} height={56} />}>
          {({ sessions: list }) => (
            <Stack component="ul" gap="md" m={0} p={0}>
              {list.map((session) => (
                <Line
                  key={session.id}
                  session={session}
                  isEnding={end.isPending && end.variables.id === session.id}
                  onEnd={(button) => end.mutate({ id: session.id, next: nextRowAction(button) })}
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

interface LineProps {
  session: OneSession
  isEnding: boolean
  onEnd: (button: HTMLElement) => void
}

function Line({ session, isEnding, onEnd }: LineProps) {
  const browser = browserName(session.agent)
  return (
    <Group component="li" justify="space-between" gap="sm" wrap="nowrap">
      <Stack gap={0} miw={0}>
        <Group gap="xs">
          <Text size="sm" fw={600} title={session.agent} style={{ overflowWrap: 'anywhere' }}>
            {browser}
          </Text>
          {session.isThis && <Badge color="teal">This one</Badge>}
        </Group>
        <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
          From {session.from}, <RelativeTime at={session.createdAt} />; ends{' '}
          <RelativeTime at={session.expiresAt} />
        </Text>
      </Stack>
      {!session.isThis && (
        <Button
          size="xs"
          // The words beside it give way, not the button.
          style={{ flexShrink: 0 }}
          {...dangerOutline}
          {...removesRow}
          loading={isEnding}
          aria-label={`End the session of ${browser} from ${session.from}`}
          onClick={(event) => onEnd(event.currentTarget)}
        >
          End
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
        verb="Sign out everywhere"
        act={endAll}
        onClose={dialog.close}
      >
        <Text size="sm">This ends every session of yours, this one too. Then sign in again.</Text>
      </ConfirmDialog>
    </>
  )
}
