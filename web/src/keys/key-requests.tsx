// Requests for API keys: members see their own and create the key of an approved one; admins and owners
// decide.
import { Badge, Button, Group, Paper, Stack, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { call, type Output } from '../api.ts'
import { restoreFocus } from '../components/focus.ts'
import { ErrorAlert } from '../components/lists/query-states.tsx'
import { RelativeTime } from '../components/relative-time.tsx'
import { Section } from '../components/section.tsx'
import { showToast } from '../components/toast.tsx'
import { invalidateWorkspace, type KeyRequest, keyRequestsQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { CreatedKeyDialog } from './created-key-dialog.tsx'

const OWN_LISTED_MAX = 5

const states: Record<KeyRequest['state'], { color: string; name: string }> = {
  pending: { color: 'amber', name: 'Waiting' },
  approved: { color: 'green', name: 'Approved' },
  declined: { color: 'red', name: 'Declined' },
  withdrawn: { color: 'gray', name: 'Withdrawn' },
  used: { color: 'gray', name: 'Key created' },
  expired: { color: 'gray', name: 'Expired' },
}

export function KeyRequests() {
  const { slug } = useWorkspace()
  const { data } = useQuery(keyRequestsQuery(slug))
  // The raw key stays in this state: the mutation returns nothing that a cache could keep.
  const [created, setCreated] = useState<Output<'key-requests.pick-up'> | null>(null)
  const own = data?.requests.filter(({ user }) => user.isYou).slice(0, OWN_LISTED_MAX) ?? []
  const others = data?.requests.filter(({ user }) => !user.isYou) ?? []
  if (own.length + others.length === 0 && created === null) return null
  return (
    <Section title="Key requests" description="Approved requests are valid for 24 hours.">
      <Stack component="ul" gap="sm" p={0} m={0}>
        {[...others, ...own].map((request) => (
          <Request key={request.id} request={request} onCreated={setCreated} />
        ))}
      </Stack>
      <CreatedKeyDialog created={created} onClose={() => setCreated(null)} onClosed={() => restoreFocus()} />
    </Section>
  )
}

interface RequestProps {
  request: KeyRequest
  onCreated: (key: Output<'key-requests.pick-up'>) => void
}

function Request({ request, onCreated }: RequestProps) {
  const { slug } = useWorkspace()
  const { id, label, user, state, createdAt, decidedBy } = request
  const input = { workspace: slug, id }
  const act = useMutation({
    mutationFn: async (action: 'approve' | 'decline' | 'withdraw' | 'pick-up') => {
      if (action === 'pick-up') onCreated(await call('key-requests.pick-up', input))
      else await call(`key-requests.${action}`, input)
      if (action === 'approve') showToast('Request approved.')
    },
    onSettled: () => invalidateWorkspace(slug, 'keys'),
  })
  const name = label || 'API key'
  const isOpen = state === 'pending' || state === 'approved'
  return (
    <Paper component="li" p="md" style={{ listStyle: 'none' }}>
      <Stack gap={6}>
        <Group justify="space-between">
          <Text fw={600} size="sm" style={{ overflowWrap: 'anywhere' }}>
            {name}
          </Text>
          <Badge color={states[state].color}>{states[state].name}</Badge>
        </Group>
        <Text size="sm" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
          {user.isYou ? 'Requested by you' : `Requested by ${user.name} (${user.email})`}{' '}
          <RelativeTime at={createdAt} />
          {decidedBy && `, ${state === 'declined' ? 'declined' : 'approved'} by ${decidedBy}`}
        </Text>
        <ErrorAlert error={act.error} />
        {isOpen && (
          <Group gap="xs" justify="flex-end">
            {user.isYou ? (
              <>
                <Button size="xs" variant="default" onClick={() => act.mutate('withdraw')}>
                  Withdraw
                </Button>
                {state === 'approved' && (
                  <Button size="xs" loading={act.isPending} onClick={() => act.mutate('pick-up')}>
                    Create key
                  </Button>
                )}
              </>
            ) : (
              <>
                <Button
                  size="xs"
                  variant="default"
                  aria-label={`Decline ${name} of ${user.name}`}
                  onClick={() => act.mutate('decline')}
                >
                  Decline
                </Button>
                <Button
                  size="xs"
                  loading={act.isPending}
                  aria-label={`Approve ${name} of ${user.name}`}
                  onClick={() => act.mutate('approve')}
                >
                  Approve
                </Button>
              </>
            )}
          </Group>
        )}
      </Stack>
    </Paper>
  )
}
