// The log of deliveries to a webhook endpoint, with request and response of each.
import { Badge, Button, Code, Group, Paper, Stack, Text, Title, UnstyledButton } from '@mantine/core'
import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { call } from '../api.ts'
import { LoadMoreButton } from '../components/lists/load-more-button.tsx'
import { EmptyState, ErrorAlert, QueryResult, SkeletonRows } from '../components/lists/query-states.tsx'
import rows from '../components/lists/rows.module.css'
import { RelativeTime } from '../components/relative-time.tsx'
import { showToast } from '../components/toast.tsx'
import { WebhookIcon } from '../icons.tsx'
import {
  deliveriesQuery,
  deliveryQuery,
  invalidateWorkspace,
  type WebhookDelivery,
  type WebhookEndpoint,
} from '../queries.ts'
import { useWorkspace } from '../session.tsx'

export function DeliveryList({ endpoint }: { endpoint: WebhookEndpoint }) {
  const { slug } = useWorkspace()
  const deliveries = useInfiniteQuery(deliveriesQuery(slug, endpoint.id))
  return (
    <Stack gap="sm">
      <Title order={2} size="h4">
        Deliveries
      </Title>
      <QueryResult query={deliveries} skeleton={<SkeletonRows count={5} height={52} />}>
        {({ pages }) => {
          const list = pages.flatMap((page) => page.deliveries)
          if (list.length === 0)
            return (
              <EmptyState icon={<WebhookIcon size={36} />} title="No deliveries yet">
                Send a test event to try it.
              </EmptyState>
            )
          return (
            <>
              <Paper>
                <ul className={`${rows.rows} ${rows.dense}`}>
                  {list.map((delivery) => (
                    <DeliveryRow key={delivery.position} delivery={delivery} endpoint={endpoint} />
                  ))}
                </ul>
              </Paper>
              <LoadMoreButton query={deliveries} />
            </>
          )
        }}
      </QueryResult>
    </Stack>
  )
}

const stateBadges = {
  delivered: { color: 'green', label: 'Delivered' },
  failing: { color: 'red', label: 'Failing' },
  pending: { color: 'gray', label: 'Waiting' },
} as const

const describeOutcome = ({ status, error, attempts }: WebhookDelivery) =>
  [status !== null && `HTTP ${status}`, error, attempts > 1 && `${attempts} attempts`]
    .filter(Boolean)
    .join(' · ')

interface DeliveryRowProps {
  delivery: WebhookDelivery
  endpoint: WebhookEndpoint
}

function DeliveryRow({ delivery, endpoint }: DeliveryRowProps) {
  const [isOpen, setOpen] = useState(false)
  const details = useId()
  const badge = stateBadges[delivery.state]
  return (
    <li>
      <UnstyledButton
        w="100%"
        aria-expanded={isOpen}
        aria-controls={isOpen ? details : undefined}
        onClick={() => setOpen(!isOpen)}
      >
        <Group justify="space-between" gap="sm" wrap="nowrap">
          <Stack gap={2} flex={1} miw={0}>
            <Text size="sm" fw={600} className="mono">
              {delivery.type}
            </Text>
            <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
              <RelativeTime at={delivery.attemptedAt ?? delivery.createdAt} />
              {describeOutcome(delivery) && ` · ${describeOutcome(delivery)}`}
            </Text>
          </Stack>
          <Badge color={badge.color} flex="none">
            {badge.label}
          </Badge>
        </Group>
      </UnstyledButton>
      {isOpen && (
        <div id={details}>
          <DeliveryDetails delivery={delivery} endpoint={endpoint} />
        </div>
      )}
    </li>
  )
}

function DeliveryDetails({ delivery, endpoint }: DeliveryRowProps) {
  const { slug } = useWorkspace()
  const { position } = delivery
  const query = useQuery(deliveryQuery(slug, endpoint.id, position, delivery.attempts))
  const resend = useMutation({
    mutationFn: () =>
      call('webhooks.resend', { workspace: slug, id: endpoint.id, position: String(position) }),
    onSuccess: () => {
      showToast(delivery.state === 'delivered' ? 'Resending the event.' : 'Retrying pending deliveries.')
      return invalidateWorkspace(slug, 'webhooks')
    },
  })
  return (
    <QueryResult query={query} skeleton={<SkeletonRows count={2} />}>
      {({ eventId, url, body, response, durationMs }) => (
        <Stack gap="xs" mt="sm">
          <Text size="xs" c="dimmed" className="mono" style={{ overflowWrap: 'anywhere' }}>
            webhook-id: {eventId}
          </Text>
          <Text size="sm" fw={600} style={{ overflowWrap: 'anywhere' }}>
            Request{url && ` to ${url}`}
          </Text>
          <Code block className="mono wrapped" tabIndex={0}>
            {formatJson(body)}
          </Code>
          {delivery.status !== null && (
            <>
              <Text size="sm" fw={600}>
                Response: HTTP {delivery.status} after {durationMs} ms
              </Text>
              {response ? (
                <Code block className="mono wrapped" tabIndex={0}>
                  {response}
                </Code>
              ) : (
                <Text size="sm" c="dimmed">
                  No body.
                </Text>
              )}
            </>
          )}
          <ErrorAlert error={resend.error} />
          <Group>
            <Button
              size="xs"
              variant="default"
              loading={resend.isPending}
              disabled={endpoint.disabledAt !== null}
              onClick={() => resend.mutate()}
            >
              {delivery.state === 'delivered' ? 'Resend' : 'Retry now'}
            </Button>
          </Group>
        </Stack>
      )}
    </QueryResult>
  )
}

const formatJson = (text: string) => JSON.stringify(JSON.parse(text), null, 2)
