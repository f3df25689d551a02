// The page /authorize: an agent asks to sign in (OAuth 2.1), and the user approves or denies it. The query is
// the authorization request, which the server reads.
import { Anchor, Skeleton, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { ApiError } from '../api-error.ts'
import { LoadError } from '../components/lists/query-states.tsx'
import { agentQuery, sessionQuery } from '../queries.ts'
import { LoadingScreen } from '../shell/connection-status.tsx'
import { AuthLayout } from '../sign-in/auth-layout.tsx'
import { ApproveAgent } from './approve-agent.tsx'
import { InvalidRequest } from './invalid-request.tsx'

export function AuthorizePage() {
  // Without a session the user is sent to the sign-in page, and then back here.
  const session = useQuery(sessionQuery)
  if (!session.data) return <LoadingScreen error={session.error} retry={session.refetch} />
  return <Request request={location.search.slice(1)} user={session.data.user} />
}

interface RequestProps {
  request: string
  user: { name: string; email: string }
}

function Request({ request, user }: RequestProps) {
  const agent = useQuery(agentQuery(request))
  const [redirectTo, setRedirectTo] = useState<string>()
  /** The page stays open if the URL opens an app. */
  const leave = (url: string) => {
    setRedirectTo(url)
    location.replace(url)
  }
  if (redirectTo !== undefined) return <Decided redirectTo={redirectTo} />
  if (agent.data?.problem) return <InvalidRequest request={request} agent={agent.data} leave={leave} />
  if (agent.data) return <ApproveAgent request={request} agent={agent.data} user={user} leave={leave} />
  // No URL to send the user back to is safe.
  if (agent.error instanceof ApiError && agent.error.code === 'invalid_request')
    return (
      <AuthLayout title="Cannot sign in the agent">
        <Text size="sm" role="alert" style={{ overflowWrap: 'anywhere' }}>
          {agent.error.message}
        </Text>
        <Text size="sm">Start again from the agent. If that does not help, give it an API key.</Text>
      </AuthLayout>
    )
  return (
    <AuthLayout title="Sign in an agent">
      {agent.error ? (
        <LoadError error={agent.error} retry={agent.refetch} isRetrying={agent.isFetching} />
      ) : (
        <output aria-label="Loading">
          <Skeleton h={220} />
        </output>
      )}
    </AuthLayout>
  )
}

function Decided({ redirectTo }: { redirectTo: string }) {
  return (
    <AuthLayout title="Return to the agent">
      <Text size="sm" role="status">
        Your decision was sent to the agent. You can close this page.
      </Text>
      <Anchor href={redirectTo} size="sm" ta="center">
        Open the agent
      </Anchor>
    </AuthLayout>
  )
}
