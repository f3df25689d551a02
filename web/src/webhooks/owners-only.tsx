import { EmptyState } from '../components/lists/query-states.tsx'
import { Page } from '../components/page.tsx'
import { WebhookIcon } from '../icons.tsx'
import { useWorkspace } from '../session.tsx'

export function OwnersOnly() {
  const { name } = useWorkspace()
  return (
    <Page title="Webhooks" context={name}>
      <EmptyState icon={<WebhookIcon size={36} />} title="Only owners can manage webhooks">
        Ask an owner of this workspace.
      </EmptyState>
    </Page>
  )
}
