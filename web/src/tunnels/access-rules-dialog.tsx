// Dialog for the access rules of a name: a user name with password, allowed networks, and the Host header.
import { Button, Checkbox, Group, Modal, Text, Textarea, TextInput } from '@mantine/core'
import { basicAuthLength } from '../../../src/lib/credentials/basic-auth.ts'
import { Form } from '../components/forms/form.tsx'
import { SaveButton } from '../components/forms/save-button.tsx'
import { ErrorAlert } from '../components/lists/query-states.tsx'
import { NewPasswordInput } from '../components/new-password-input.tsx'
import type { TunnelName } from '../queries.ts'
import { type AccessRulesForm, useAccessRulesForm } from './access-rules-form.ts'

interface AccessRulesDialogProps {
  name: TunnelName | null
  opened: boolean
  onClose: () => void
}

export function AccessRulesDialog({ name, opened, onClose }: AccessRulesDialogProps) {
  return (
    <Modal opened={opened} onClose={onClose} title={`Access rules of ${name?.name}`}>
      {name && <DialogForm name={name} onClose={onClose} />}
    </Modal>
  )
}

function DialogForm({ name, onClose }: { name: TunnelName; onClose: () => void }) {
  const form = useAccessRulesForm(name, onClose)
  return (
    <Form onSubmit={() => form.save()}>
      <Text size="sm" c="dimmed">
        The rules apply to new requests and connections of all tunnels with this name, including open ones.
        Saving rules also reserves this name.
      </Text>
      <Checkbox
        data-autofocus
        label="Require a user name and password"
        description={
          'Browsers ask for them. TCP tunnels cannot use a password, so their connections are rejected. ' +
          'Tunnels opened with --basic-auth cannot use this name.'
        }
        checked={form.values.requiresPassword}
        onChange={(event) => form.edit({ requiresPassword: event.currentTarget.checked })}
      />
      {form.values.requiresPassword && (
        <BasicAuthFields form={form} hasPassword={name.access.user !== null} />
      )}
      <Textarea
        label="Allowed networks"
        description="IP addresses or networks such as 192.0.2.0/24, one per line. Leave empty to allow all."
        autosize
        minRows={3}
        maxRows={10}
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        value={form.values.networks}
        onChange={(event) => form.edit({ networks: event.currentTarget.value })}
        error={form.errors.networks}
      />
      <TextInput
        label="Host header"
        description={
          'For local servers that reject the host of the tunnel, such as Vite. “rewrite” sends the host of ' +
          'the target, for example localhost:5173; you can also enter a host. Leave empty to send the ' +
          'host of the tunnel. Tunnels opened with --host-header use their own.'
        }
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        value={form.values.hostHeader}
        onChange={(event) => form.edit({ hostHeader: event.currentTarget.value })}
        error={form.errors.hostHeader}
      />
      <ErrorAlert error={form.otherError} />
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <SaveButton saved={form.saved} edited={form.values} isPending={form.isSaving} isValid={form.isValid}>
          Save
        </SaveButton>
      </Group>
    </Form>
  )
}

function BasicAuthFields({ form, hasPassword }: { form: AccessRulesForm; hasPassword: boolean }) {
  return (
    <>
      <TextInput
        label="User name"
        required
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        value={form.values.user}
        onChange={(event) => form.edit({ user: event.currentTarget.value })}
        error={form.errors.user}
      />
      <NewPasswordInput
        label="Password"
        value={form.values.password}
        onChange={(password) => form.edit({ password })}
        error={form.errors.password}
        keepsCurrent={hasPassword}
        countLength={basicAuthLength}
      />
    </>
  )
}
