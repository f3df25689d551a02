// Pages for addresses that lead nowhere.
import { Button } from '@mantine/core'
import { Link } from 'wouter'
import { OverviewIcon } from '../icons.tsx'
import { Page } from './page.tsx'
import { EmptyState } from './query-states.tsx'

const home = (
  <Button component={Link} href="/" variant="default">
    Go to the start
  </Button>
)

export function NotFoundPage() {
  return (
    <Page title="Page not found">
      <EmptyState icon={<OverviewIcon size={40} />} title="This way leads nowhere" action={home}>
        There is no page at this address. It may have been moved, or the address has a typing mistake.
      </EmptyState>
    </Page>
  )
}

export function WorkspaceNotFoundPage() {
  return (
    <Page title="Workspace not found">
      <EmptyState
        icon={<OverviewIcon size={40} />}
        title="You no longer belong to this workspace, or it does not exist"
        action={home}
      >
        One of its admins or owners can invite you. If you typed the address, look at it once more.
      </EmptyState>
    </Page>
  )
}

export function NoWorkspacePage() {
  return (
    <Page title="Welcome">
      <EmptyState icon={<OverviewIcon size={40} />} title="You belong to no workspace yet">
        Ask an owner or admin of your team’s workspace for an invitation, or the operator of this server for a
        workspace of your own. Then open the link that you are sent.
      </EmptyState>
    </Page>
  )
}
