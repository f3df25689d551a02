// Overview of a workspace: the steps to the first tunnel or open tunnels, details, and recent usage.
import { Badge, Code, Group, Paper, Skeleton, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { useSearch } from 'wouter'
import type { Output } from '../api.ts'
import { ConnectMachine } from '../components/client-setup.tsx'
import { CopyIconButton } from '../components/copy.tsx'
import { Detail } from '../components/detail.tsx'
import { QueryResult, SkeletonRows } from '../components/lists/query-states.tsx'
import { Page } from '../components/page.tsx'
import { RelativeTime } from '../components/relative-time.tsx'
import { RoleBadge, roleDescriptions } from '../components/role-badge.tsx'
import { Section } from '../components/section.tsx'
import { formatDay } from '../format.ts'
import { ExpiringKeys } from '../keys/expiring-keys.tsx'
import { quotasQuery, usageQuery, workspaceQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { TrafficChart } from '../usage/charts.tsx'
import { provisionCommand, tunnelUrl } from './commands.ts'
import { GetStarted } from './get-started.tsx'
import { Notices } from './notices.tsx'
import { OpenTunnelsPanel } from './open-tunnels-panel.tsx'
import classes from './overview.module.css'
import { isUsedUp, Quotas } from './quotas.tsx'
import { Totals } from './totals.tsx'

type Workspace = Output<'workspace.read'>
type Usage = Output<'usage.read'>

const DAYS = 30

export function OverviewPage() {
  const { slug, name } = useWorkspace()
  const workspace = useQuery(workspaceQuery(slug))
  const usage = useQuery(usageQuery(slug, DAYS))
  const showsSteps = useShowsSteps(slug, usage.data)
  // Set by the link or sign-in that accepted an invitation.
  const hasJoined = new URLSearchParams(useSearch()).has('joined')
  return (
    <Page title={name} context="Overview">
      <Notices />
      <ExpiringKeys isLinked />
      {showsSteps && workspace.data && usage.data && (
        <GetStarted workspace={workspace.data} hasTraffic={hasTraffic(usage.data)} />
      )}
      {!showsSteps && usage.data && hasJoined && (
        <Section
          title="Connect a machine"
          description="Open tunnels to apps on your machine. The page API keys shows these steps again."
        >
          <ConnectMachine />
        </Section>
      )}
      <OpenTunnelsPanel showsSteps={usage.isPending ? undefined : showsSteps || hasJoined} />
      <QueryResult query={workspace} skeleton={<Skeleton h={150} />}>
        {(details) => <Details workspace={details} lastSeen={usage.data?.lastSeen} />}
      </QueryResult>
      <Quotas />
      <QueryResult query={usage} skeleton={<SkeletonRows count={3} height={110} />}>
        {(data) => hasTraffic(data) && <RecentUsage usage={data} />}
      </QueryResult>
    </Page>
  )
}

const hasTraffic = (usage: Usage): boolean => usage.lastSeen !== null

/**
 * The checklist stays after the first traffic until the page is left, so that its last step is seen ticked.
 */
function useShowsSteps(workspace: string, usage: Usage | undefined): boolean {
  const [emptyWorkspace, setEmptyWorkspace] = useState<string | null>(null)
  const isEmpty = usage !== undefined && !hasTraffic(usage)
  useEffect(() => {
    if (isEmpty) setEmptyWorkspace(workspace)
  }, [isEmpty, workspace])
  return isEmpty || emptyWorkspace === workspace
}

interface DetailsProps {
  workspace: Workspace
  lastSeen: string | null | undefined
}

function Details({ workspace, lastSeen }: DetailsProps) {
  return (
    <Paper p="lg">
      <Stack gap="md">
        <Readiness workspace={workspace} />
        <dl className={classes.details}>
          <Detail name="Tunnel domain">
            <Group gap={4} wrap="nowrap" align="flex-start">
              <span className="mono">{workspace.tunnelBase}</span>
              <CopyIconButton text={workspace.tunnelBase} name="Copy tunnel domain" />
            </Group>
            <Text size="xs" c="dimmed">
              Example: <span className="mono">{tunnelUrl(workspace.exampleUrl, workspace)}</span>
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
        </dl>
      </Stack>
    </Paper>
  )
}

function Readiness({ workspace: { provisioned, slug } }: { workspace: Workspace }) {
  const { data } = useQuery(quotasQuery(slug))
  const used = data?.quotas.filter(isUsedUp).map(({ kind }) => kind) ?? []
  const isReady = provisioned && !used.some((kind) => kind !== 'keys')
  return (
    <Group gap="xs">
      <Badge color={isReady ? 'green' : 'amber'} size="lg">
        {isReady ? 'Ready' : 'Not ready'}
      </Badge>
      <Text size="sm" c="dimmed" flex="1 1 260px">
        {!provisioned ? (
          <>
            You cannot open tunnels until your server admin runs{' '}
            <Code className="mono">{provisionCommand(slug)}</Code>.
          </>
        ) : isReady ? (
          'You can open tunnels in this workspace.'
        ) : used.includes('bytes') || used.includes('requests') ? (
          'A monthly quota is used up, so edges reject requests and new tunnels.'
        ) : (
          'All tunnels of your quota are open. Close one to open another.'
        )}
      </Text>
    </Group>
  )
}

function RecentUsage({ usage }: { usage: Usage }) {
  return (
    <>
      <div>
        <Title order={2} size="h4">
          Last {DAYS} days
        </Title>
        <Text size="xs" c="dimmed">
          Daily totals (UTC), including today so far.
        </Text>
      </div>
      <Totals usage={usage} />
      <Paper p="lg">
        <TrafficChart series={usage.series} />
      </Paper>
    </>
  )
}
