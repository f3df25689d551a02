// Pages for unknown paths, unknown workspaces and users without a workspace.
import { Button } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { Link } from 'wouter'
import { OverviewIcon } from '../icons.tsx'
import { useSession } from '../session.tsx'
import { CreateWorkspaceDialog } from '../shell/create-workspace-dialog.tsx'
import { EmptyState } from './lists/query-states.tsx'
import { Page } from './page.tsx'

const overviewButton = (
  <Button component={Link} href="/" variant="default">
    Go to overview
  </Button>
)

export function NotFoundPage() {
  return (
    <Page title="Page not found">
      <EmptyState
        icon={<OverviewIcon size={40} />}
        title="There is no page at this URL"
        action={overviewButton}
      >
        Check the URL for typos. The page may have been moved or deleted.
      </EmptyState>
    </Page>
  )
}

export function WorkspaceNotFoundPage() {
  return (
    <Page title="Workspace not found">
      <EmptyState
        icon={<OverviewIcon size={40} />}
        title="This workspace does not exist, or you are not a member"
        action={overviewButton}
      >
        Check the URL, or ask an admin or owner of the workspace for an invitation.
      </EmptyState>
    </Page>
  )
}

export function NoWorkspacePage() {
  const { canCreateWorkspaces } = useSession()
  const [opened, dialog] = useDisclosure()
  return (
    <Page title="Welcome to Adit">
      <EmptyState
        icon={<OverviewIcon size={40} />}
        title="You are not a member of any workspace"
        action={canCreateWorkspaces && <Button onClick={dialog.open}>Create workspace</Button>}
      >
        {canCreateWorkspaces
          ? 'Create a workspace, or ask an admin or owner of your team’s workspace for an invitation.'
          : 'Ask an admin or owner of your team’s workspace for an invitation, or your server admin to create a workspace.'}
      </EmptyState>
      <CreateWorkspaceDialog opened={opened} onClose={dialog.close} />
    </Page>
  )
}
