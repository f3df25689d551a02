// One webhook endpoint: its state, what owners can do with it, and its deliveries.
import { Anchor, Button, Group, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useLocation, useParams } from 'wouter'
import { call } from '../api.ts'
import { ConfirmDialog } from '../components/dialogs/confirm.tsx'
import { dangerOutline } from '../components/dialogs/danger-outline.ts'
import { restoreFocus } from '../components/focus.ts'
import { ErrorAlert, QueryResult, SkeletonRows } from '../components/lists/query-states.tsx'
import { NotFoundPage } from '../components/not-found.tsx'
import { Page } from '../components/page.tsx'
import { RelativeTime } from '../components/relative-time.tsx'
import { showToast } from '../components/toast.tsx'
import { invalidateWorkspace, type WebhookEndpoint, webhooksQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { DeliveryList } from './delivery-list.tsx'
import { EndpointDialog } from './endpoint-dialog.tsx'
import { EndpointBadge, EndpointProblem } from './endpoint-state.tsx'
import { OwnersOnly } from './owners-only.tsx'
import { RotateSecretDialog } from './rotate-secret-dialog.tsx'

export function EndpointPage() {
  const { slug, name, role } = useWorkspace()
  const { id } = useParams<{ id: string }>()
  const query = useQuery({ ...webhooksQuery(slug), enabled: role === 'owner' })
  if (role !== 'owner') return <OwnersOnly />
  return (
    <QueryResult query={query} skeleton={<SkeletonRows />}>
      {({ endpoints }) => {
        const endpoint = endpoints.find((each) => each.id === id)
        return endpoint ? <Endpoint endpoint={endpoint} workspace={name} /> : <NotFoundPage />
      }}
    </QueryResult>
  )
}

type Opened = 'edit' | 'rotate' | 'delete' | null

function Endpoint({ endpoint, workspace }: { endpoint: WebhookEndpoint; workspace: string }) {
  const { slug } = useWorkspace()
  const [, navigate] = useLocation()
  const [opened, setOpened] = useState<Opened>(null)
  const { id, url, description, disabledAt, previousSecretUntil } = endpoint
  const close = () => setOpened(null)
  const isEnabled = disabledAt === null
  const test = useMutation({
    mutationFn: () => call('webhooks.test', { workspace: slug, id }),
    onSuccess: () => {
      showToast('Test event queued.')
      return invalidateWorkspace(slug, 'webhooks')
    },
  })
  const toggle = useMutation({
    mutationFn: () => call('webhooks.update', { workspace: slug, id, enabled: !isEnabled }),
    onSuccess: () => {
      showToast(isEnabled ? 'Webhook disabled.' : 'Webhook enabled.')
      return invalidateWorkspace(slug, 'webhooks', 'keys')
    },
  })
  const remove = async () => {
    await call('webhooks.delete', { workspace: slug, id })
    navigate(`/w/${slug}/webhooks`)
    await invalidateWorkspace(slug, 'webhooks', 'keys')
  }
  return (
    <Page
      title={description || new URL(url).host}
      context={workspace}
      description={
        <span className="mono" style={{ overflowWrap: 'anywhere' }}>
          {url}
        </span>
      }
      actions={<EndpointBadge {...endpoint} />}
    >
      <Anchor component={Link} href={`/w/${slug}/webhooks`} size="sm">
        All webhooks
      </Anchor>
      <EndpointProblem {...endpoint} />
      {previousSecretUntil && Date.parse(previousSecretUntil) > Date.now() && (
        <Text size="sm" c="dimmed">
          Also signed with the previous secret; that ends <RelativeTime at={previousSecretUntil} />.
        </Text>
      )}
      <Group gap="sm">
        {isEnabled ? (
          <Button loading={test.isPending} onClick={() => test.mutate()}>
            Send test event
          </Button>
        ) : (
          <Button loading={toggle.isPending} onClick={() => toggle.mutate()}>
            Enable
          </Button>
        )}
        <Button variant="default" onClick={() => setOpened('edit')}>
          Edit
        </Button>
        <Button variant="default" onClick={() => setOpened('rotate')}>
          Rotate secret
        </Button>
        {isEnabled && (
          <Button variant="default" loading={toggle.isPending} onClick={() => toggle.mutate()}>
            Disable
          </Button>
        )}
        <Button {...dangerOutline} onClick={() => setOpened('delete')}>
          Delete
        </Button>
      </Group>
      <ErrorAlert error={test.error ?? toggle.error} />
      <DeliveryList endpoint={endpoint} />
      <EndpointDialog
        endpoint={endpoint}
        opened={opened === 'edit'}
        onClose={close}
        onDone={() => restoreFocus()}
      />
      <RotateSecretDialog id={id} opened={opened === 'rotate'} onClose={close} />
      <ConfirmDialog
        opened={opened === 'delete'}
        title="Delete webhook?"
        actionLabel="Delete webhook"
        onConfirm={remove}
        onClose={close}
        successMessage="Webhook deleted."
      >
        <Text size="sm">It stops receiving events, and its delivery log is no longer available.</Text>
      </ConfirmDialog>
    </Page>
  )
}
