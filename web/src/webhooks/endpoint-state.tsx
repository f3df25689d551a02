// The state of a webhook endpoint, as a badge and in words.
import { Alert, Badge, Text } from '@mantine/core'
import { RelativeTime } from '../components/relative-time.tsx'
import { formatCount } from '../format.ts'
import { WarningIcon } from '../icons.tsx'
import type { WebhookEndpoint } from '../queries.ts'

export function EndpointBadge({ disabledAt, failingSince }: WebhookEndpoint) {
  if (disabledAt !== null) return <Badge color="gray">Disabled</Badge>
  if (failingSince !== null) return <Badge color="red">Failing</Badge>
  return <Badge color="green">Enabled</Badge>
}

const reasons: Record<string, string> = {
  failing: 'Deliveries failed for 24 hours.',
  gone: 'It responded with status 410, Gone.',
  backlog: 'Too many deliveries were waiting.',
}

export function EndpointProblem({ disabledAt, disabledReason, failingSince, pending }: WebhookEndpoint) {
  if (disabledAt !== null)
    return (
      <Alert color="amber" icon={<WarningIcon />} title="This webhook is disabled">
        <Text size="sm">
          {reasons[disabledReason ?? ''] ?? 'An owner disabled it.'} It has missed all events since{' '}
          <RelativeTime at={disabledAt} />. <Waiting count={pending} />
        </Text>
      </Alert>
    )
  if (failingSince === null) return null
  return (
    <Alert color="red" icon={<WarningIcon />} title="Deliveries are failing">
      <Text size="sm">
        The first attempt failed <RelativeTime at={failingSince} />. After 24 hours of retries, the webhook is
        disabled. <Waiting count={pending} />
      </Text>
    </Alert>
  )
}

const Waiting = ({ count }: { count: number }) =>
  count > 0 && (count === 1 ? '1 delivery is waiting.' : `${formatCount(count)} deliveries are waiting.`)
