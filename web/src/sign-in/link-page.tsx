// What a link that somebody was given leads to: joining a workspace, or setting another password.
import { Anchor, Button, Skeleton, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import { call } from '../api.ts'
import { ApiError } from '../api-error.ts'
import { Failed } from '../parts/states.tsx'
import { forVisitors } from '../queries.ts'
import { takeLinkFromAddress } from './link-in-address.ts'
import { Outside } from './outside.tsx'
import { UseLink } from './use-link.tsx'

export function LinkPage() {
  const [link] = useState(takeLinkFromAddress)
  const facts = useQuery({
    // The link itself is a secret, and not for the key of a cache.
    queryKey: ['link'],
    queryFn: () => call('links.read', { link }),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    ...forVisitors,
  })
  if (facts.data) return <UseLink link={link} facts={facts.data} />
  const { error } = facts
  if (!error)
    return (
      <Outside title="One moment">
        <Skeleton h={36} />
        <Skeleton h={36} />
      </Outside>
    )
  if (error instanceof ApiError && (error.code === 'not_found' || error.code === 'invalid_request'))
    return <SpentLink />
  return (
    <Outside title="Your link">
      <Failed error={error} retry={facts.refetch} isRetrying={facts.isFetching} />
    </Outside>
  )
}

function SpentLink() {
  return (
    <Outside title="This link is no longer good">
      <Text size="sm">
        A link works once and within 24 hours, and whoever made it can revoke it. Perhaps you have used it
        already: then just sign in.
      </Text>
      <Text size="sm">
        Otherwise ask the person who invited you, or the operator of this server, for a new one.
      </Text>
      <Button component={Link} href="/sign-in">
        Go to sign-in
      </Button>
      <Anchor component={Link} href="/forgotten" size="sm" ta="center">
        Forgotten password?
      </Anchor>
    </Outside>
  )
}
