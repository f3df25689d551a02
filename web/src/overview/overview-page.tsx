// Overview of a workspace: details, and recent usage or the steps to the first tunnel.
import { Badge, Code, Group, Paper, SimpleGrid, Skeleton, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useEffect, useState } from 'react'
import type { Output } from '../api.ts'
import { CopyBlock, CopyIconButton } from '../components/copy.tsx'
import { Page } from '../components/page.tsx'
import { QueryResult, SkeletonRows } from '../components/query-states.tsx'
import { RelativeTime } from '../components/relative-time.tsx'
import { RoleBadge, roleDescriptions } from '../components/role-badge.tsx'
import { formatDay } from '../format.ts'
import { usageQuery, workspaceQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { TrafficChart } from '../usage/charts.tsx'
import { LOCAL_PORT, loginCommand, provisionCommand, tunnelCommand, tunnelUrl } from './commands.ts'
import { GetStarted } from './get-started.tsx'
import { Totals } from './totals.tsx'

type Workspace = Output<'workspace.read'>

const DAYS = 30

export function OverviewPage() {
  const { slug, name } = useWorkspace()
  const workspace = useQuery(workspaceQuery(slug))
  const usage = useQuery(usageQuery(slug, DAYS))
  return (
    <Page title={name} context="Overview">
      <QueryResult query={workspace} skeleton={<Skeleton h={150} />}>
        {(details) => <Details workspace={details} lastSeen={usage.data?.lastSeen} />}
      </QueryResult>
      <QueryResult query={usage} skeleton={<SkeletonRows count={3} height={110} />}>
        {(data) => <Activity key={slug} usage={data} exampleHost={workspace.data?.exampleUrl} />}
      </QueryResult>
    </Page>
  )
}

/**
 * The checklist stays after the first traffic until the page is left, so that its last step is seen ticked.
 */
function Activity({ usage, exampleHost }: { usage: Output<'usage.read'>; exampleHost: string | undefined }) {
  const hasTraffic = usage.lastSeen !== null
  const [wasEmpty, setWasEmpty] = useState(false)
  useEffect(() => {
    if (!hasTraffic) setWasEmpty(true)
  }, [hasTraffic])
  const showsSteps = !hasTraffic || wasEmpty
  return (
    <>
      {showsSteps && exampleHost && <GetStarted exampleHost={exampleHost} hasTraffic={hasTraffic} />}
      {hasTraffic && <RecentUsage usage={usage} />}
      {!showsSteps && <OpenTunnelHint />}
    </>
  )
}

function OpenTunnelHint() {
  return (
    <Paper p="lg">
      <Title order={2} size="h5">
        Open a tunnel
      </Title>
      <Text size="sm" c="dimmed" mb="xs">
        To the local server on port {LOCAL_PORT}, after <Code className="mono">{loginCommand}</Code>:
      </Text>
      <CopyBlock text={tunnelCommand} name="Copy tunnel command" />
    </Paper>
  )
}

interface DetailsProps {
  workspace: Workspace
  lastSeen: string | null | undefined
}

function Details({ workspace, lastSeen }: DetailsProps) {
  return (
    <Paper p="lg">
      <Stack gap="md">
        <Provisioning workspace={workspace} />
        <SimpleGrid component="dl" cols={{ base: 1, xs: 2, md: 4 }} m={0} spacing="lg">
          <Detail name="Tunnel domain">
            <Group gap={4} wrap="nowrap" align="flex-start">
              <span className="mono">{workspace.tunnelBase}</span>
              <CopyIconButton text={workspace.tunnelBase} name="Copy tunnel domain" />
            </Group>
            <Text size="xs" c="dimmed">
              Example: <span className="mono">{tunnelUrl(workspace.exampleUrl)}</span>
            </Text>
          </Detail>
          <Detail name="Slug">
            <span className="mono">{workspace.slug}</span>
            <Text size="xs" c="dimmed">
              Created {formatDay(workspace.createdAt)}
            </Text>
          </Detail>
          <Detail name="Last activity">
            {lastSeen ? <RelativeTime at={lastSeen} /> : lastSeen === null ? 'No traffic yet' : '…'}
          </Detail>
          <Detail name="Your role">
            <RoleBadge role={workspace.role} />
            <Text size="xs" c="dimmed" mt={2}>
              {roleDescriptions[workspace.role]}
            </Text>
          </Detail>
        </SimpleGrid>
      </Stack>
    </Paper>
  )
}

function Provisioning({ workspace: { provisioned, slug } }: { workspace: Workspace }) {
  return (
    <Group gap="xs">
      <Badge color={provisioned ? 'green' : 'amber'} size="lg">
        {provisioned ? 'Ready' : 'Not ready'}
      </Badge>
      <Text size="sm" c="dimmed" flex="1 1 260px">
        {provisioned ? (
          'Tunnels can be opened in this workspace.'
        ) : (
          <>
            Tunnels cannot be opened until the operator of this server runs{' '}
            <Code className="mono">{provisionCommand(slug)}</Code>.
          </>
        )}
      </Text>
    </Group>
  )
}

function Detail({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <Text component="dt" size="xs" c="dimmed" fw={600}>
        {name}
      </Text>
      <Text component="dd" m={0} size="sm">
        {children}
      </Text>
    </div>
  )
}

function RecentUsage({ usage }: { usage: Output<'usage.read'> }) {
  return (
    <>
      <div>
        <Title order={2} size="h4">
          Last {DAYS} days
        </Title>
        <Text size="xs" c="dimmed">
          Daily totals (UTC). Today is partial.
        </Text>
      </div>
      <Totals usage={usage} />
      <Paper p="lg">
        <TrafficChart series={usage.series} />
      </Paper>
    </>
  )
}
