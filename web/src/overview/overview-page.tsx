// A workspace at a glance: what it is called, whether it carries tunnels, and what went through it lately.
import { Badge, Group, Paper, SimpleGrid, Skeleton, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { Output } from '../api.ts'
import { CopyIconButton } from '../components/copy.tsx'
import { Page } from '../components/page.tsx'
import { QueryResult, SkeletonRows } from '../components/query-states.tsx'
import { RelativeTime } from '../components/relative-time.tsx'
import { RoleBadge, roleMeanings } from '../components/role-badge.tsx'
import { formatDay } from '../format.ts'
import { usageQuery, workspaceQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { TrafficChart } from '../usage/charts.tsx'
import { GetStarted } from './get-started.tsx'
import { Totals } from './totals.tsx'

const DAYS = 30

export function OverviewPage() {
  const { slug, name } = useWorkspace()
  const workspace = useQuery(workspaceQuery(slug))
  const usage = useQuery(usageQuery(slug, DAYS))
  return (
    <Page title={name} of="Overview">
      <QueryResult query={workspace} skeleton={<Skeleton h={150} />}>
        {(facts) => <Facts workspace={facts} lastSeen={usage.data?.lastSeen} />}
      </QueryResult>
      <QueryResult query={usage} skeleton={<SkeletonRows count={3} height={110} />}>
        {(figures) => (figures.lastSeen === null ? <GetStarted /> : <RecentUsage usage={figures} />)}
      </QueryResult>
    </Page>
  )
}

function Facts({
  workspace,
  lastSeen,
}: {
  workspace: Output<'workspace.read'>
  lastSeen?: string | null | undefined
}) {
  return (
    <Paper p="lg">
      <Stack gap="md">
        <Group gap="xs">
          <Badge color={workspace.provisioned ? 'green' : 'amber'} size="lg">
            {workspace.provisioned ? 'Provisioned' : 'Not provisioned yet'}
          </Badge>
          <Text size="sm" c="dimmed">
            {workspace.provisioned
              ? 'Edges carry the tunnels of this workspace.'
              : 'Edges carry no tunnels of this workspace until the operator has provisioned it.'}
          </Text>
        </Group>
        <SimpleGrid component="dl" cols={{ base: 1, xs: 2, md: 4 }} m={0} spacing="lg">
          <Fact name="Tunnel base">
            <Group gap={4} wrap="nowrap" align="flex-start">
              <span className="mono">{workspace.tunnelBase}</span>
              <CopyIconButton text={workspace.tunnelBase} name="Copy tunnel base" />
            </Group>
            <Text size="xs" c="dimmed">
              A tunnel is, for example, at <span className="mono">{workspace.exampleUrl}</span>
            </Text>
          </Fact>
          <Fact name="Slug">
            <span className="mono">{workspace.slug}</span>
            <Text size="xs" c="dimmed">
              Since {formatDay(workspace.createdAt)}
            </Text>
          </Fact>
          <Fact name="Last seen">
            {lastSeen ? <RelativeTime at={lastSeen} /> : lastSeen === null ? 'No traffic yet' : '…'}
          </Fact>
          <Fact name="Your role">
            <RoleBadge role={workspace.role} />
            <Text size="xs" c="dimmed" mt={2}>
              {roleMeanings[workspace.role]}
            </Text>
          </Fact>
        </SimpleGrid>
      </Stack>
    </Paper>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
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
          By day of UTC
        </Text>
      </div>
      <Totals usage={usage} />
      <Paper p="lg">
        <TrafficChart series={usage.series} />
      </Paper>
    </>
  )
}
