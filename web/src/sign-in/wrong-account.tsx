// A link for one person, opened where another one is signed in.
import { Anchor, Button, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Link } from 'wouter'
import { call } from '../api.ts'
import { ErrorAlert } from '../components/query-states.tsx'
import { allowSignedOut, queryClient, sessionQuery } from '../queries.ts'
import type { Session } from '../session.tsx'
import { AuthLayout } from './auth-layout.tsx'

interface WrongAccountProps {
  signedIn: Session['person']
  /** Whom the link is for. */
  email: string
  onSignedOut: () => Promise<unknown>
}

export function WrongAccount({ signedIn, email, onSignedOut }: WrongAccountProps) {
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
    <AuthLayout title="This link is for somebody else">
      <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
        You are signed in as <strong>{signedIn.name}</strong> ({signedIn.email}); this link is for{' '}
        <strong>{email}</strong>.
      </Text>
      <Text size="sm">If that is you too, sign out here and go on with the link.</Text>
      <ErrorAlert error={signOut.error} />
      <Button loading={signOut.isPending} onClick={() => signOut.mutate()}>
        Sign out and go on
      </Button>
      <Anchor component={Link} href="/" size="sm" ta="center">
        Stay signed in as {signedIn.name}
      </Anchor>
    </AuthLayout>
  )
}
