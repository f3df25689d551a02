// Shown when a link for one account is opened while another one is signed in.
import { Anchor, Button, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Link } from 'wouter'
import { call } from '../api.ts'
import { ErrorAlert } from '../components/lists/query-states.tsx'
import { allowSignedOut, queryClient, sessionQuery } from '../queries.ts'
import type { Session } from '../session.tsx'
import { AuthLayout } from './auth-layout.tsx'

interface WrongAccountProps {
  user: Session['user']
  /** Address that the link is for. */
  email: string
  onSignedOut: () => Promise<unknown>
}

export function WrongAccount({ user, email, onSignedOut }: WrongAccountProps) {
  const signOut = useMutation({
    mutationFn: () => call('session.end'),
    onSuccess: () => {
      queryClient.removeQueries({ queryKey: sessionQuery.queryKey })
      queryClient.removeQueries({ queryKey: ['workspace'] })
      return onSignedOut()
    },
    ...allowSignedOut,
  })
  return (
    <AuthLayout title="This link is for another account">
      <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
        You are signed in as <strong>{user.name}</strong> ({user.email}), but the link is for{' '}
        <strong>{email}</strong>.
      </Text>
      <Text size="sm">Sign out to continue with the other account.</Text>
      <ErrorAlert error={signOut.error} />
      <Button loading={signOut.isPending} onClick={() => signOut.mutate()}>
        Sign out and continue
      </Button>
      <Anchor component={Link} href="/" size="sm" ta="center">
        Stay signed in as {user.name}
      </Anchor>
    </AuthLayout>
  )
}
