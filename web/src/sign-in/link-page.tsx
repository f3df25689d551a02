// What a link that somebody was given leads to: joining a workspace, or setting another password.
import { Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { call } from '../api.ts'
import { ApiError } from '../api-error.ts'
import { LoadError } from '../components/query-states.tsx'
import { allowSignedOut } from '../queries.ts'
import { AcceptLink } from './accept-link.tsx'
import { AuthLayout } from './auth-layout.tsx'
import { InvalidLink, MissingLink } from './invalid-link.tsx'
import { readLinkToken } from './link-token.ts'
import { WrongAccount } from './wrong-account.tsx'

export function LinkPage() {
  const [{ link, opened }, setLink] = useState(() => ({ link: readLinkToken(), opened: 0 }))
  // A link that is opened where this page is shown already changes the address and loads nothing.
  useEffect(() => {
    const openAgain = () => {
      if (location.hash.length > 1)
        setLink((before) => ({ link: readLinkToken(), opened: before.opened + 1 }))
    }
    window.addEventListener('hashchange', openAgain)
    return () => window.removeEventListener('hashchange', openAgain)
  }, [])
  if (!link) return <MissingLink />
  return <OpenedLink key={opened} link={link} opened={opened} />
}

function OpenedLink({ link, opened }: { link: string; opened: number }) {
  const shared = { gcTime: 0, staleTime: Number.POSITIVE_INFINITY, ...allowSignedOut }
  const facts = useQuery({
    // The link itself is a secret, and not for the key of a cache.
    queryKey: ['link', opened, 'facts'],
    queryFn: () => call('links.read', { link }),
    ...shared,
  })
  /** Null for one who is not signed in. */
  const visitor = useQuery({
    queryKey: ['link', opened, 'visitor'],
    queryFn: async () => {
      try {
        return (await call('session.read')).person
      } catch (error) {
        if (error instanceof ApiError && error.status === 401) return null
        throw error
      }
    },
    ...shared,
  })
  const error = facts.error ?? visitor.error
  if (error instanceof ApiError && (error.code === 'not_found' || error.code === 'invalid_request'))
    return <InvalidLink />
  const again = () => Promise.all([facts.refetch(), visitor.refetch()])
  if (error)
    return (
      <AuthLayout title="Your link">
        <LoadError error={error} retry={again} isRetrying={facts.isFetching || visitor.isFetching} />
      </AuthLayout>
    )
  if (!facts.data || visitor.data === undefined)
    return (
      <AuthLayout title="One moment">
        <Skeleton h={36} />
        <Skeleton h={36} />
      </AuthLayout>
    )
  const { email, step } = facts.data
  if (email && visitor.data && visitor.data.email !== email)
    return <WrongAccount signedIn={visitor.data} email={email} onSignedOut={again} />
  // What to do first depends on who is signed in.
  return <AcceptLink key={step} link={link} facts={facts.data} signedIn={visitor.data} />
}
