// Checklist for the first tunnel of a workspace, shown until there is traffic.
import { Anchor, Button, Paper, Stack, Text, ThemeIcon, Timeline, Title, VisuallyHidden } from '@mantine/core'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Output } from '../api.ts'
import { InstallCommand, TunnelCommand } from '../components/client-setup.tsx'
import { CopyBlock } from '../components/copy.tsx'
import { CheckIcon } from '../icons.tsx'
import { useKeyRights } from '../keys/key-rights.ts'
import { docsUrl } from '../paths.ts'
import { keysQuery, workspaceQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { client, edgeCommands } from './commands.ts'

const REFRESH_MS = 5_000

interface Step {
  title: string
  isDone: boolean
  content: ReactNode
}

interface GetStartedProps {
  workspace: Output<'workspace.read'>
  hasTraffic: boolean
}

export function GetStarted({ workspace, hasTraffic }: GetStartedProps) {
  const { slug } = workspace
  const polling = { refetchInterval: hasTraffic ? (false as const) : REFRESH_MS }
  const { data: keyPages } = useInfiniteQuery({ ...keysQuery(slug, 'active'), ...polling })
  // Updates the workspace of the page.
  useQuery({ ...workspaceQuery(slug), ...polling })
  const keys = keyPages?.pages.flatMap((page) => page.keys) ?? []
  const steps: Step[] = [
    { title: 'Create an API key', isDone: keys.length > 0, content: <KeyStep isDone={keys.length > 0} /> },
    {
      title: 'Run an edge',
      isDone: workspace.edgeName !== null,
      content: <EdgeStep workspace={workspace} />,
    },
    {
      title: 'Install the client and sign in',
      isDone: keys.some(({ lastUsedAt }) => lastUsedAt !== null),
      content: <LoginStep />,
    },
    { title: 'Open a tunnel', isDone: hasTraffic, content: <TunnelStep /> },
  ]
  const done = steps.filter(({ isDone }) => isDone).length
  return (
    <Paper p="lg">
      <Stack>
        <div>
          <Title order={2} size="h4">
            Get started
          </Title>
          <Text size="sm" c="dimmed">
            {done === steps.length
              ? 'All done: your first tunnel has traffic.'
              : `Open your first tunnel. ${done} of ${steps.length} steps done.`}
          </Text>
        </div>
        <Timeline active={-1} bulletSize={26} lineWidth={2}>
          {steps.map(({ title, isDone, content }, index) => (
            <Timeline.Item
              key={title}
              bullet={isDone ? <DoneBullet /> : index + 1}
              title={
                isDone ? (
                  <>
                    {title} <VisuallyHidden>(done)</VisuallyHidden>
                  </>
                ) : (
                  title
                )
              }
            >
              <Stack gap="xs" align="stretch">
                {content}
              </Stack>
            </Timeline.Item>
          ))}
        </Timeline>
      </Stack>
    </Paper>
  )
}

const DoneBullet = () => (
  <ThemeIcon color="green" size={26} radius="xl" variant="light">
    <CheckIcon size={16} />
  </ThemeIcon>
)

function KeyStep({ isDone }: { isDone: boolean }) {
  const { slug } = useWorkspace()
  const { canCreate, canRequest } = useKeyRights()
  const ask = canRequest ? 'Request one on the page' : 'See whom to ask for one on the page'
  if (!canCreate || isDone)
    return (
      <Text size="sm">
        Keys let tunnel clients and scripts use this workspace.{' '}
        {canCreate ? 'To create another one, see' : ask}{' '}
        <Anchor component={Link} href={`/w/${slug}/keys`} underline="always">
          API keys
        </Anchor>
        .
      </Text>
    )
  return (
    <>
      <Text size="sm">
        Keys let tunnel clients and scripts use this workspace. You see a key once, when you create it.
      </Text>
      <div>
        <Button component={Link} href={`/w/${slug}/keys?create`} size="xs">
          Create key
        </Button>
      </div>
    </>
  )
}

function EdgeStep({ workspace }: Pick<GetStartedProps, 'workspace'>) {
  if (workspace.edgeName !== null)
    return (
      <Text size="sm">
        Edge <strong>{workspace.edgeName}</strong> is registered. It receives requests from the internet and
        sends them through your tunnels.
      </Text>
    )
  return (
    <>
      <Text size="sm">
        An edge receives requests from the internet and sends them through your tunnels. Your server admin
        starts one on the server:
      </Text>
      <CopyBlock text={edgeCommands(workspace)} name="Copy edge commands" />
    </>
  )
}

function LoginStep() {
  return (
    <>
      <InstallCommand />
      <Text size="sm">
        Sign in: paste the API key, or press Enter to sign in with your browser. To use a key without the CLI,
        see the{' '}
        <Anchor href={docsUrl} underline="always">
          API reference
        </Anchor>
        .
      </Text>
      <CopyBlock text={client.login} name="Copy login command" />
    </>
  )
}

function TunnelStep() {
  return (
    <>
      <TunnelCommand />
      <Text size="sm">Usage appears here seconds after the first request.</Text>
    </>
  )
}
