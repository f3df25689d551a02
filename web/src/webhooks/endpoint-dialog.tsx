// Dialog that adds a webhook endpoint, then shows its secret once; or changes one.

import { Button, Checkbox, Group, Modal, Radio, SimpleGrid, Stack, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { TEXT_CHARS_MAX, WEBHOOK_URL_CHARS_MAX } from '../../../src/contract/limits.ts'
import { call } from '../api.ts'
import { Form } from '../components/forms/form.tsx'
import { SaveButton } from '../components/forms/save-button.tsx'
import { ErrorAlert } from '../components/lists/query-states.tsx'
import { showToast } from '../components/toast.tsx'
import { invalidateWorkspace, type WebhookEndpoint } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { type EventType, eventLabels } from './event-labels.ts'
import { SecretDialog } from './secret-dialog.tsx'

interface EndpointDialogProps {
  /** The endpoint to change; null adds one. */
  endpoint: WebhookEndpoint | null
  opened: boolean
  onClose: () => void
  /** Called after the secret was shown and closed. */
  onDone: () => void
}

export function EndpointDialog({ endpoint, opened, onClose, onDone }: EndpointDialogProps) {
  // The secret stays in this state, in no cache.
  const [secret, setSecret] = useState<string | null>(null)
  return (
    <>
      <Modal
        opened={opened && secret === null}
        onClose={onClose}
        title={endpoint ? 'Edit webhook' : 'Add webhook'}
      >
        {opened && <EndpointForm endpoint={endpoint} onClose={onClose} onCreated={setSecret} />}
      </Modal>
      <SecretDialog title="Webhook added" secret={secret} onClose={() => setSecret(null)} onClosed={onDone} />
    </>
  )
}

interface EndpointFormProps {
  endpoint: WebhookEndpoint | null
  onClose: () => void
  onCreated: (secret: string) => void
}

function EndpointForm({ endpoint, onClose, onCreated }: EndpointFormProps) {
  const { slug } = useWorkspace()
  const [url, setUrl] = useState(endpoint?.url ?? '')
  const [description, setDescription] = useState(endpoint?.description ?? '')
  const [isAll, setAll] = useState((endpoint?.events.length ?? 0) === 0)
  const [events, setEvents] = useState<string[]>(endpoint?.events ?? [])
  const settings = { url: url.trim(), description, events: isAll ? [] : (events as EventType[]).toSorted() }
  const save = useMutation({
    mutationFn: async () => {
      if (endpoint) await call('webhooks.update', { workspace: slug, id: endpoint.id, ...settings })
      else onCreated((await call('webhooks.create', { workspace: slug, ...settings })).secret)
    },
    onSuccess: () => {
      onClose()
      invalidateWorkspace(slug, 'webhooks')
      if (endpoint) showToast('Webhook changed.')
    },
  })
  return (
    <Form onSubmit={() => save.mutate()}>
      <TextInput
        label="URL"
        type="url"
        placeholder="https://hooks.example.com/adit"
        required
        data-autofocus
        maxLength={WEBHOOK_URL_CHARS_MAX}
        value={url}
        onChange={(event) => setUrl(event.currentTarget.value)}
      />
      <TextInput
        label="Description"
        maxLength={TEXT_CHARS_MAX}
        value={description}
        onChange={(event) => setDescription(event.currentTarget.value)}
      />
      <Radio.Group
        label="Events"
        value={isAll ? 'all' : 'some'}
        onChange={(value) => setAll(value === 'all')}
      >
        <Stack gap="xs" mt={6}>
          <Radio value="all" label="All events" />
          <Radio value="some" label="Selected events" />
        </Stack>
      </Radio.Group>
      {!isAll && (
        <Checkbox.Group aria-label="Selected events" value={events} onChange={setEvents}>
          <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs">
            {Object.entries(eventLabels).map(([type, label]) => (
              <Checkbox key={type} value={type} label={label} />
            ))}
          </SimpleGrid>
        </Checkbox.Group>
      )}
      <ErrorAlert error={save.error} />
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <SaveButton
          saved={
            endpoint && {
              url: endpoint.url,
              description: endpoint.description,
              events: endpoint.events.toSorted(),
            }
          }
          edited={settings}
          isPending={save.isPending}
          isValid={isAll || events.length > 0}
        >
          {endpoint ? 'Save' : 'Add webhook'}
        </SaveButton>
      </Group>
    </Form>
  )
}
