// The audit log of a workspace, newest entries first.
import { Group, Paper, Text } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { LoadMoreButton } from '../components/load-more-button.tsx'
import { Page } from '../components/page.tsx'
import { EmptyState, QueryResult, SkeletonRows } from '../components/query-states.tsx'
import { RelativeTime } from '../components/relative-time.tsx'
import rows from '../components/rows.module.css'
import { formatUtcMinute } from '../format.ts'
import { LogIcon } from '../icons.tsx'
import { auditQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import classes from './audit.module.css'
import { describeEntry, type Entry } from './entry-text.ts'

export function AuditPage() {
  const { slug, name } = useWorkspace()
  const log = useInfiniteQuery(auditQuery(slug))
  return (
    <Page
      title="Audit log"
      context={name}
      description="Changes to API keys, tunnels and members, and sign-ins. Entries cannot be edited or deleted."
    >
      <QueryResult query={log} skeleton={<SkeletonRows count={6} height={52} />}>
        {({ pages }) => {
          const entries = pages.flatMap((page) => page.entries)
          if (entries.length === 0) return <EmptyState icon={<LogIcon size={36} />} title="No entries yet" />
          return (
            <>
              <Paper>
                <ol className={`${rows.rows} ${rows.dense} ${classes.log}`}>
                  {entries.map((entry) => (
                    <EntryRow key={entry.id} entry={entry} />
                  ))}
                </ol>
              </Paper>
              <LoadMoreButton query={log} />
            </>
          )
        }}
      </QueryResult>
    </Page>
  )
}

function EntryRow({ entry }: { entry: Entry }) {
  const { actor, verb, object, suffix } = describeEntry(entry)
  return (
    <li>
      <Group justify="space-between" gap="xs" align="baseline">
        <Text size="sm" flex="1 1 260px" miw={0} className={classes.text ?? ''}>
          {actor && <strong>{actor}</strong>} {verb} {object && <strong>{object}</strong>} {suffix}{' '}
          {entry.address && (
            <Text span c="dimmed">
              · {entry.address}
            </Text>
          )}
        </Text>
        <Text size="xs" c="dimmed" className="tabular">
          {formatUtcMinute(entry.at)} · <RelativeTime at={entry.at} />
        </Text>
      </Group>
    </li>
  )
}
