// The quotas of the workspace: what is used, what is left, and when they renew.
import { Group, Paper, Progress, Skeleton, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { Output } from '../api.ts'
import { QueryResult } from '../components/lists/query-states.tsx'
import { formatBytes, formatBytesExact, formatCount, formatDay } from '../format.ts'
import { quotasQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'

type Quota = Output<'quotas.read'>['quotas'][number]
type QuotaKind = Quota['kind']

const NEAR_PERCENT = 80

const quotaTitles: Record<QuotaKind, string> = {
  bytes: 'Traffic this month',
  requests: 'Requests this month',
  tunnels: 'Open tunnels',
  keys: 'Active API keys',
}

export const formatQuota = (kind: QuotaKind, amount: number | bigint): string =>
  kind === 'bytes' ? formatBytes(amount) : formatCount(amount)

const isMonthly = ({ kind, limit }: Quota): boolean =>
  limit !== null && (kind === 'bytes' || kind === 'requests')

export const isUsedUp = ({ used, limit }: Quota): boolean => limit !== null && Number(used) >= limit

const percentUsed = ({ used, limit }: Quota): number =>
  limit === null ? 0 : Math.min((Number(used) / limit) * 100, 100)

/** Keys always have a limit: alone, it says nothing until much of it is used. */
const isWorthShowing = (quota: Quota): boolean =>
  quota.kind === 'keys' ? percentUsed(quota) >= NEAR_PERCENT : quota.limit !== null

/** Shows quotas with a limit. */
export function Quotas() {
  const { slug } = useWorkspace()
  const quotas = useQuery(quotasQuery(slug))
  return (
    <QueryResult query={quotas} skeleton={<Skeleton h={120} />}>
      {({ quotas, renewsAt }) =>
        quotas.some(isWorthShowing) && (
          <Paper p="lg" component="section" aria-labelledby="quotas">
            <Stack gap="md">
              <div>
                <Title order={2} size="h4" id="quotas">
                  Quotas
                </Title>
                <Text size="xs" c="dimmed">
                  {quotas.some(isMonthly) && `Monthly quotas renew on ${formatDay(renewsAt)} at 00:00 UTC. `}
                  Set by your server admin.
                </Text>
              </div>
              {quotas.map(
                (quota) => quota.limit !== null && <Bar key={quota.kind} {...quota} limit={quota.limit} />,
              )}
            </Stack>
          </Paper>
        )
      }
    </QueryResult>
  )
}

function Bar({ kind, used, limit }: Quota & { limit: number }) {
  const percent = percentUsed({ kind, used, limit })
  const left = Math.max(limit - Number(used), 0)
  const exact = (amount: number | bigint) =>
    kind === 'bytes' ? formatBytesExact(amount) : formatCount(amount)
  return (
    <div>
      <Group justify="space-between" gap="xs" mb={4}>
        <Text size="sm" fw={600}>
          {quotaTitles[kind]}
        </Text>
        <Text size="sm" className="tabular" title={`${exact(used)} of ${exact(limit)}`}>
          {formatQuota(kind, used)} of {formatQuota(kind, limit)}
          <Text span size="sm" c="dimmed">
            {' '}
            · {left === 0 ? 'none' : formatQuota(kind, left)} left
          </Text>
        </Text>
      </Group>
      <Progress
        value={percent}
        color={percent >= 100 ? 'red' : percent >= NEAR_PERCENT ? 'amber' : 'green'}
        aria-label={`${quotaTitles[kind]}: ${Math.floor(percent)}% used`}
      />
    </div>
  )
}
