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
        Its API keys no longer work and its tunnels are closed. Your server admin can restore it with all its
        data until {formatUtcMinute(restorableUntil)}: <code>adit admin workspace restore {slug}</code>.
      </EmptyState>
    </Page>
  )
}
