// Checklist for the first tunnel of a workspace, shown until there is traffic.
import { Anchor, Button, Paper, Stack, Text, ThemeIcon, Timeline, Title, VisuallyHidden } from '@mantine/core'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import { LOCAL_PORT } from '../../../src/lib/client-commands.ts'
import { InstallCommand } from '../components/client-setup.tsx'
import { CopyBlock } from '../components/copy.tsx'
import { CheckIcon } from '../icons.tsx'
import { useKeyRights } from '../keys/key-rights.ts'
import { docsUrl } from '../paths.ts'
import { keysQuery, workspaceQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { client, EDGE_PORT, edgeCommands, tunnelUrl } from './commands.ts'

const REFRESH_MS = 5_000

interface Step {
  title: string
  isDone: boolean
  content: ReactNode
}

interface GetStartedProps {
  exampleHost: string
  hasTraffic: boolean
}

export function GetStarted({ exampleHost, hasTraffic }: GetStartedProps) {
  const { slug } = useWorkspace()
  const polling = { refetchInterval: hasTraffic ? (false as const) : REFRESH_MS }
  const { data: keyPages } = useInfiniteQuery({ ...keysQuery(slug, 'active'), ...polling })
  const { data: workspace } = useQuery({ ...workspaceQuery(slug), ...polling })
  const keys = keyPages?.pages.flatMap((page) => page.keys) ?? []
  const edgeName = workspace?.edgeName ?? null
  const steps: Step[] = [
    { title: 'Create an API key', isDone: keys.length > 0, content: <KeyStep isDone={keys.length > 0} /> },
    { title: 'Run an edge', isDone: edgeName !== null, content: <EdgeStep name={edgeName} /> },
    {
      title: 'Install the client and sign in',
      isDone: keys.some(({ lastUsedAt }) => lastUsedAt !== null),
      content: <LoginStep />,
    },
    { title: 'Open a tunnel', isDone: hasTraffic, content: <TunnelStep exampleHost={exampleHost} /> },
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
  if (!canCreate)
    return (
      <Text size="sm">
        Keys let tunnel clients and scripts use this workspace.{' '}
        {canRequest ? 'Request one on the page ' : 'See whom to ask for one on the page '}
        <Anchor component={Link} href={`/w/${slug}/keys`} underline="always">
          API keys
        </Anchor>
        .
      </Text>
    )
  if (isDone)
    return (
      <Text size="sm">
        Keys let tunnel clients and scripts use this workspace. To create another one, see{' '}
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

function EdgeStep({ name }: { name: string | null }) {
  if (name !== null)
    return (
      <Text size="sm">
        Edge <strong>{name}</strong> is registered. It receives requests from the internet and sends them
        through your tunnels.
      </Text>
    )
  return (
    <>
      <Text size="sm">
        An edge receives requests from the internet and sends them through your tunnels. Your server admin
        starts one on the server:
      </Text>
      <CopyBlock text={edgeCommands} name="Copy edge commands" />
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

function TunnelStep({ exampleHost }: { exampleHost: string }) {
  const url = tunnelUrl(exampleHost)
  return (
    <>
      <Text size="sm">
        Visitors reach your app on port {LOCAL_PORT} at{' '}
        {url ? <span className="mono">{url}</span> : 'the URL that this prints'}. Usage appears here seconds
        after the first request.
      </Text>
      <CopyBlock text={client.tunnel} name="Copy tunnel command" />
      {!url && (
        <Text size="sm" c="dimmed">
          If the edge does not listen on port {EDGE_PORT} (<span className="mono">ADIT_EDGE_PORT</span>), add{' '}
          <span className="mono nowrap">--edge http://127.0.0.1:&lt;port&gt;</span>.
        </Text>
      )}
    </>
  )
}
