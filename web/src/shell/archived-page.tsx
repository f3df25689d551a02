// Shown instead of every page of an archived workspace.

import { EmptyState } from '../components/lists/query-states.tsx'
import { Page } from '../components/page.tsx'
import { formatUtcMinute } from '../format.ts'
import { OverviewIcon } from '../icons.tsx'
import { useWorkspace } from '../session.tsx'

export function ArchivedPage({ restorableUntil }: { restorableUntil: string }) {
  const { name, slug } = useWorkspace()
  return (
    <Page title="Workspace archived" context={name}>
      <EmptyState icon={<OverviewIcon size={40} />} title={`${name} is archived`}>
        Its API keys are rejected and its tunnels are closed. All data is kept. The operator of this server
        can restore it until {formatUtcMinute(restorableUntil)} with{' '}
        <code>adit admin workspace restore {slug}</code>.
      </EmptyState>
    </Page>
  )
}
