// Shows which agent asks to sign in and what it could do, and lets the user approve or deny it.
import { Alert, Button, Checkbox, Group, NativeSelect, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../api.ts'
import { Form } from '../components/forms/form.tsx'
import { useDeliberate } from '../components/forms/use-deliberate.ts'
import { ErrorAlert } from '../components/lists/query-states.tsx'
import { WarningIcon } from '../icons.tsx'
import { lastWorkspace } from '../paths.ts'
import type { Agent } from '../queries.ts'
import { AuthLayout } from '../sign-in/auth-layout.tsx'
import { AgentFacts } from './agent-facts.tsx'

interface ApproveAgentProps {
  request: string
  agent: Agent
  user: { name: string; email: string }
  leave: (url: string) => void
}

export function ApproveAgent({ request, agent, user, leave }: ApproveAgentProps) {
  const { workspaces } = agent
  const [slug, setSlug] = useState(() => initialWorkspace(agent))
  const [managesKeys, setManagesKeys] = useState(false)
  const workspace = workspaces.find((each) => each.slug === slug)
  const isDeliberate = useDeliberate()
  const decide = useMutation({
    mutationFn: (approves: boolean) =>
      approves
        ? call('agents.approve', { workspace: slug, request, managesKeys })
        : call('agents.deny', { request, ...(workspace && { workspace: slug }) }),
    onSuccess: ({ redirectTo }) => leave(redirectTo),
  })
  return (
    <AuthLayout title="Sign in an agent" description="An agent wants to act in your workspace.">
      <AgentFacts agent={agent} />
      <Alert color="amber" icon={<WarningIcon />} style={{ overflowWrap: 'anywhere' }}>
        Approve only if you just connected this agent{agent.isLocal ? ' on this computer' : ''}, and trust it.{' '}
        {agent.isLocal ? 'Any app on this computer can use this name.' : `${agent.target} gets access.`}
      </Alert>
      <Form onSubmit={() => decide.mutate(true)}>
        {workspace ? (
          <>
            <NativeSelect
              label="Workspace"
              // Two workspaces may have the same name.
              data={workspaces.map(({ slug: value, name }) => ({ value, label: `${name} (${value})` }))}
              value={slug}
              onChange={(event) => {
                setSlug(event.currentTarget.value)
                setManagesKeys(false)
              }}
            />
            {workspace.obstacle === null ? (
              <Access
                mayManageKeys={workspace.mayManageKeys}
                managesKeys={managesKeys}
                onChange={setManagesKeys}
              />
            ) : (
              <Text size="sm">{workspace.obstacle}</Text>
            )}
          </>
        ) : (
          <Text size="sm">You are not a member of a workspace. Ask a workspace owner to invite you.</Text>
        )}
        <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
          Signed in as {user.name} ({user.email}).
        </Text>
        <ErrorAlert error={decide.error} />
        <Group grow>
          <Button variant="default" disabled={decide.isPending} onClick={() => decide.mutate(false)}>
            Deny
          </Button>
          {workspace?.obstacle === null && (
            <Button type="submit" disabled={!isDeliberate} loading={decide.isPending}>
              Approve
            </Button>
          )}
        </Group>
      </Form>
    </AuthLayout>
  )
}

interface AccessProps {
  mayManageKeys: boolean
  managesKeys: boolean
  onChange: (managesKeys: boolean) => void
}

const Access = ({ mayManageKeys, managesKeys, onChange }: AccessProps) => (
  <>
    <Text size="sm">
      It can read the workspace, its usage, tunnels and API keys without their secrets, and close tunnels if
      API keys may do that here. Its access ends after at most 30 days, or when you revoke it under API keys.
    </Text>
    {mayManageKeys && (
      <Checkbox
        label="Also manage API keys"
        description="It can create API keys in your name, which stay valid when its own access ends, and revoke keys."
        checked={managesKeys}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
    )}
  </>
)

function initialWorkspace({ workspaces }: Agent): string {
  const usable = workspaces.filter(({ obstacle }) => obstacle === null)
  const choices = usable.length > 0 ? usable : workspaces
  return (choices.find(({ slug }) => slug === lastWorkspace()) ?? choices[0])?.slug ?? ''
}
