// Webhook endpoints of a workspace, for its owners.
import { Anchor, Button, Group, Paper, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { Link } from 'wouter'
import { EmptyState, QueryResult, SkeletonRows } from '../components/lists/query-states.tsx'
import rows from '../components/lists/rows.module.css'
import { Page } from '../components/page.tsx'
import { formatCount } from '../format.ts'
import { PlusIcon, WebhookIcon } from '../icons.tsx'
import { type WebhookEndpoint, webhooksQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { EndpointDialog } from './endpoint-dialog.tsx'
import { EndpointBadge } from './endpoint-state.tsx'
import { OwnersOnly } from './owners-only.tsx'

export function WebhooksPage() {
  const { slug, name, role } = useWorkspace()
  const query = useQuery({ ...webhooksQuery(slug), enabled: role === 'owner' })
  const [isAdding, setAdding] = useState(false)
  const addRef = useRef<HTMLButtonElement>(null)
  if (role !== 'owner') return <OwnersOnly />
  return (
    <Page
      title="Webhooks"
      context={name}
      description="Adit sends events of this workspace to these URLs, signed and in order."
      actions={
        <Button ref={addRef} leftSection={<PlusIcon />} onClick={() => setAdding(true)}>
          Add webhook
        </Button>
      }
    >
      <QueryResult query={query} skeleton={<SkeletonRows count={3} height={64} />}>
        {({ endpoints }) =>
          endpoints.length === 0 ? (
            <EmptyState icon={<WebhookIcon size={36} />} title="No webhooks yet">
              Add one to get notified about keys, members, tunnels and quotas.
            </EmptyState>
          ) : (
            <Paper>
              <ul className={rows.rows}>
                {endpoints.map((endpoint) => (
                  <EndpointRow key={endpoint.id} slug={slug} endpoint={endpoint} />
                ))}
              </ul>
            </Paper>
          )
        }
      </QueryResult>
      <EndpointDialog
        endpoint={null}
        opened={isAdding}
        onClose={() => setAdding(false)}
        onDone={() => addRef.current?.focus()}
      />
    </Page>
  )
}

function EndpointRow({ slug, endpoint }: { slug: string; endpoint: WebhookEndpoint }) {
  const { id, url, description, events, pending } = endpoint
  const eventList = events.length === 0 ? 'All events' : events.join(', ')
  return (
    <li>
      <Group justify="space-between" gap="sm">
        <Stack gap={2} flex="1 1 240px" miw={0}>
          <Anchor
            component={Link}
            href={`/w/${slug}/webhooks/${id}`}
            fw={600}
            size="sm"
            style={{ overflowWrap: 'anywhere' }}
          >
            {description || url}
          </Anchor>
          {description && (
            <Text size="xs" c="dimmed" className="mono" style={{ overflowWrap: 'anywhere' }}>
              {url}
            </Text>
          )}
          <Text size="xs" c="dimmed">
            {eventList}
            {pending > 0 && ` · ${formatCount(pending)} waiting`}
          </Text>
        </Stack>
        <EndpointBadge {...endpoint} />
      </Group>
    </li>
  )
}
