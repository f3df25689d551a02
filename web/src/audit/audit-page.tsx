// The audit log of a workspace, newest entries first.
import { Anchor, Group, Paper, Text } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useSearchParams } from 'wouter'
import { LoadMoreButton } from '../components/lists/load-more-button.tsx'
import {
  EmptyState,
  ErrorAlert,
  NoMatchYet,
  QueryResult,
  SkeletonRows,
} from '../components/lists/query-states.tsx'
import rows from '../components/lists/rows.module.css'
import { Page } from '../components/page.tsx'
import { RelativeTime } from '../components/relative-time.tsx'
import { formatUtcMinute } from '../format.ts'
import { LogIcon } from '../icons.tsx'
import { auditQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { actorName, describeEntry, type Entry } from './actions.ts'
import classes from './audit.module.css'
import { describeChanges } from './changes-text.ts'
import { ExportMenu, useExport } from './export-menu.tsx'
import { type AuditFilter, readFilter, toRequest } from './filter.ts'
import { FilterFields } from './filter-fields.tsx'

export function AuditPage() {
  const { slug, name, canManage } = useWorkspace()
  const [parameters, setParameters] = useSearchParams()
  const filter = readFilter(parameters)
  const setFilter = (changed: AuditFilter) => setParameters({ ...changed }, { replace: true })
  const log = useInfiniteQuery(auditQuery(slug, toRequest(filter)))
  const exporting = useExport(slug, filter)
  const loaded = log.data?.pages.flatMap((page) => page.entries) ?? []
  return (
    <Page
      title="Audit log"
      context={name}
      description="Sign-ins, and changes to API keys, tunnels, members and settings."
      actions={canManage && <ExportMenu exporting={exporting} />}
    >
      {exporting.isError && <ErrorAlert error={exporting.error} />}
      <FilterFields filter={filter} onChange={setFilter} displayName={(id) => nameIn(loaded, id)} />
      <QueryResult query={log} skeleton={<SkeletonRows count={6} height={52} />}>
        {() =>
          loaded.length === 0 && !log.hasNextPage ? (
            <NoEntries isFiltered={Object.keys(filter).length > 0} />
          ) : (
            <>
              {loaded.length > 0 ? (
                <Paper>
                  <ol className={`${rows.rows} ${rows.dense} ${classes.log}`}>
                    {loaded.map((entry) => (
                      <EntryRow
                        key={entry.id}
                        entry={entry}
                        onFilter={(more) => setFilter({ ...filter, ...more })}
                      />
                    ))}
                  </ol>
                </Paper>
              ) : (
                <NoMatchYet items="entries" />
              )}
              <LoadMoreButton query={log} />
            </>
          )
        }
      </QueryResult>
    </Page>
  )
}

function nameIn(entries: Entry[], id: string): string {
  const byActor = entries.find(({ actor }) => actor.id === id)
  return byActor
    ? actorName(byActor.actor)
    : (entries.find(({ target }) => target.id === id)?.target.name ?? id)
}

const NoEntries = ({ isFiltered }: { isFiltered: boolean }) => (
  <EmptyState icon={<LogIcon size={36} />} title={isFiltered ? 'No matching entries' : 'No entries yet'}>
    {isFiltered && 'Change or clear the filters.'}
  </EmptyState>
)

function EntryRow({ entry, onFilter }: { entry: Entry; onFilter: (filter: AuditFilter) => void }) {
  const { actor, verb, object, suffix } = describeEntry(entry)
  const changes = describeChanges(entry)
  return (
    <li>
      <Group justify="space-between" gap="xs" align="baseline">
        <Text size="sm" component="div" flex="1 1 260px" miw={0} className={classes.text ?? ''}>
          {actor && (
            <FilterLink
              title="Show only entries of this actor"
              onClick={() => onFilter({ actor: entry.actor.id })}
            >
              {actor}
            </FilterLink>
          )}{' '}
          {verb}{' '}
          {object && (
            <FilterLink
              title="Show only entries about this target"
              onClick={() => onFilter({ target: entry.target.id })}
            >
              {object}
            </FilterLink>
          )}{' '}
          {suffix}{' '}
          {entry.address && (
            <Text span c="dimmed">
              {entry.actor.kind === 'operator' ? 'on host' : 'from'} {entry.address}
            </Text>
          )}
          {changes && (
            <Text size="xs" c="dimmed">
              {changes}
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

interface FilterLinkProps {
  title: string
  onClick: () => void
  children: string
}

const FilterLink = ({ title, onClick, children }: FilterLinkProps) => (
  <Anchor component="button" type="button" className={classes.filter ?? ''} title={title} onClick={onClick}>
    {children}
  </Anchor>
)
