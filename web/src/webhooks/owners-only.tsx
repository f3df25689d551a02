import { EmptyState } from '../components/lists/query-states.tsx'
import { Page } from '../components/page.tsx'
import { WebhookIcon } from '../icons.tsx'
import { WhomToAsk } from '../members/whom-to-ask.tsx'
import { useWorkspace } from '../session.tsx'

export function OwnersOnly() {
  const { name } = useWorkspace()
  return (
    <Page title="Webhooks" context={name}>
      <EmptyState icon={<WebhookIcon size={36} />} title="Only owners can manage webhooks">
        They send events of this workspace to other programs.
        <WhomToAsk roles={['owner']} />
      </EmptyState>
    </Page>
  )
}
