// Shown instead of every page of a workspace that requires two-factor authentication, until it is set up.
import { Button } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { EnableTwoFactor } from '../account/enable-two-factor.tsx'
import { EmptyState } from '../components/lists/query-states.tsx'
import { Page } from '../components/page.tsx'
import { showToast } from '../components/toast.tsx'
import { ShieldIcon } from '../icons.tsx'
import { useWorkspace } from '../session.tsx'

export function TwoFactorRequiredPage() {
  const { name } = useWorkspace()
  const [opened, dialog] = useDisclosure()
  return (
    <Page title="Two-factor authentication required" context={name}>
      <EmptyState
        icon={<ShieldIcon size={40} />}
        title={`${name} requires two-factor authentication`}
        action={<Button onClick={dialog.open}>Set up two-factor authentication</Button>}
      >
        The owners of this workspace require two-factor authentication. Set it up with an authenticator app to
        continue.
      </EmptyState>
      <EnableTwoFactor
        opened={opened}
        onClose={dialog.close}
        onDone={() => showToast('Two-factor authentication is on.')}
      />
    </Page>
  )
}
