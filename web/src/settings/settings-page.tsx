// Settings of a workspace. Owners change them; other members see them.
import { Alert } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { QueryResult, SkeletonRows } from '../components/lists/query-states.tsx'
import { Page } from '../components/page.tsx'
import { WhomToAsk } from '../members/whom-to-ask.tsx'
import { workspaceQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { ArchiveWorkspace } from './archive-workspace.tsx'
import { PolicyForm } from './policy-form.tsx'
import { WorkspaceName } from './workspace-name.tsx'

export function SettingsPage() {
  const { slug, name, role } = useWorkspace()
  const workspace = useQuery(workspaceQuery(slug))
  return (
    <Page title="Settings" context={name} description={`Settings of workspace ${name}`}>
      {role !== 'owner' && (
        <Alert color="gray" style={{ overflowWrap: 'anywhere' }}>
          Only owners can change these settings.
          <WhomToAsk roles={['owner']} />
        </Alert>
      )}
      <WorkspaceName key={name} />
      <QueryResult query={workspace} skeleton={<SkeletonRows count={4} height={64} />}>
        {({ policy, keysCanManageKeys }) => (
          <PolicyForm key={JSON.stringify(policy)} policy={policy} isVariantA={keysCanManageKeys} />
        )}
      </QueryResult>
      {role === 'owner' && <ArchiveWorkspace />}
    </Page>
  )
}
