// Shows a new API key once.
import { Alert, Code, Group, Text } from '@mantine/core'
import type { Output } from '../api.ts'
import { InstallCommand } from '../components/client-setup.tsx'
import { CopyBlock, CopyTextButton } from '../components/copy.tsx'
import { OnceDialog } from '../components/dialogs/once.tsx'
import { RelativeTime } from '../components/relative-time.tsx'
import { showToast } from '../components/toast.tsx'
import { WarningIcon } from '../icons.tsx'
import { client, curlCommand } from '../overview/commands.ts'

type CreatedKey = Output<'keys.create'> & Partial<Pick<Output<'keys.rotate'>, 'predecessor'>>

interface CreatedKeyDialogProps {
  created: CreatedKey | null
  onClose: () => void
  onClosed: () => void
}

function dialogTitle(created: CreatedKey | null): string {
  const key = created?.label ? `API key “${created.label}”` : 'API key'
  return `${key} ${created?.predecessor ? 'rotated' : 'created'}`
}

export function CreatedKeyDialog({ created, onClose, onClosed }: CreatedKeyDialogProps) {
  const close = () => {
    onClose()
    showToast(`${dialogTitle(created)}.`)
  }
  return (
    <OnceDialog opened={created !== null} title={dialogTitle(created)} onClose={close} onClosed={onClosed}>
      {created && (
        <>
          <Alert color="amber" icon={<WarningIcon />}>
            Store it in your secret manager. You will not see it again.
            {created.expiresAt && (
              <>
                {' '}
                Expires <RelativeTime at={created.expiresAt} />.
              </>
            )}
            {created.predecessor && <OldKey {...created.predecessor} />}
          </Alert>
          <Code block className="mono wrapped" fz="md" data-testid="raw-key">
            {created.token}
          </Code>
          <Group>
            <CopyTextButton text={created.token} name="Copy key" />
          </Group>
          <InstallCommand />
          <div>
            <Text size="sm" fw={600} mb={4}>
              Sign in and paste the key
            </Text>
            <CopyBlock text={client.login} name="Copy login command" />
          </div>
          <div>
            <Text size="sm" fw={600} mb={4}>
              Or call the API
            </Text>
            <CopyBlock text={curlCommand(created.token)} name="Copy curl command" />
          </div>
        </>
      )}
    </OnceDialog>
  )
}

function OldKey({ state, expiresAt }: Output<'keys.rotate'>['predecessor']) {
  if (state === 'revoked') return ' The old key was revoked.'
  return (
    expiresAt && (
      <>
        {' '}
        The old key expires <RelativeTime at={expiresAt} />.
      </>
    )
  )
}
