// Landing page of invitation and password reset links.
import { Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { call } from '../api.ts'
import { ApiError } from '../api-error.ts'
import { LoadError } from '../components/lists/query-states.tsx'
import { allowSignedOut, optionalSessionQuery } from '../queries.ts'
import { AcceptLink } from './accept-link.tsx'
import { AuthLayout } from './auth-layout.tsx'
import { InvalidLink, MissingLink } from './invalid-link.tsx'
import { readLinkToken } from './link-token.ts'
import { WrongAccount } from './wrong-account.tsx'

export function LinkPage() {
  const [{ token, opened }, setLink] = useState(() => ({ token: readLinkToken(), opened: 0 }))
  // Opening another link in this tab changes only the fragment, so the page is not loaded again.
  useEffect(() => {
    const onHashChange = () => {
      if (location.hash.length > 1)
        setLink((previous) => ({ token: readLinkToken(), opened: previous.opened + 1 }))
    }
    window.addEventListener('hashchange', onHashChange)
    return () => window.removeEventListener('hashchange', onHashChange)
  }, [])
  if (!token) return <MissingLink />
  return <OpenedLink key={opened} token={token} opened={opened} />
}

function OpenedLink({ token, opened }: { token: string; opened: number }) {
  const link = useQuery({
    // The token is a secret and does not belong in a cache key.
    queryKey: ['link', opened],
    queryFn: () => call('links.read', { link: token }),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    ...allowSignedOut,
  })
  const session = useQuery({ ...optionalSessionQuery, staleTime: Number.POSITIVE_INFINITY })
  const error = link.error ?? session.error
  if (error instanceof ApiError && (error.code === 'not_found' || error.code === 'invalid_request'))
    return <InvalidLink />
  const reload = () => Promise.all([link.refetch(), session.refetch()])
  if (error)
    return (
      <AuthLayout title="Open link">
        <LoadError error={error} retry={reload} isRetrying={link.isFetching || session.isFetching} />
      </AuthLayout>
    )
  if (!link.data || session.data === undefined)
    return (
      <AuthLayout title="Loading …">
        <Skeleton h={36} />
        <Skeleton h={36} />
      </AuthLayout>
    )
  const { email, step } = link.data
  const user = session.data?.user ?? null
  if (email && user && user.email !== email)
    return <WrongAccount user={user} email={email} onSignedOut={reload} />
  // Remounted when the step changes: the first step depends on who is signed in.
  return <AcceptLink key={step} token={token} link={link.data} user={user} />
}
