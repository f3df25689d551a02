// A request that cannot be approved, from a known agent. The error is sent to it only after a click: a link
// must not send users to other sites by itself.
import { Button, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { call } from '../api.ts'
import { ErrorAlert } from '../components/lists/query-states.tsx'
import type { Agent } from '../queries.ts'
import { AuthLayout } from '../sign-in/auth-layout.tsx'
import { AgentFacts } from './agent-facts.tsx'

interface InvalidRequestProps {
  request: string
  agent: Agent
  leave: (url: string) => void
}

export function InvalidRequest({ request, agent, leave }: InvalidRequestProps) {
  const deny = useMutation({
    mutationFn: () => call('agents.deny', { request }),
    onSuccess: ({ redirectTo }) => leave(redirectTo),
  })
  return (
    <AuthLayout title="Cannot sign in the agent">
      <AgentFacts agent={agent} />
      <Text size="sm" role="alert" style={{ overflowWrap: 'anywhere' }}>
        Its request is invalid: {agent.problem}
      </Text>
      <ErrorAlert error={deny.error} />
      <Button variant="default" loading={deny.isPending} onClick={() => deny.mutate()}>
        Return to the agent
      </Button>
    </AuthLayout>
  )
}
