// The list of requests, with its filter.
import { Button, Group, Loader, Stack, Text, Title } from '@mantine/core'
import { memo, useEffect, useRef } from 'react'
import type { ExchangeSummary } from '../../../../src/inspector/api.ts'
import { EmptyState, ErrorAlert, SkeletonRows } from '../../components/lists/query-states.tsx'
import { formatBytes, formatCount } from '../../format.ts'
import { ReplayIcon, SearchIcon } from '../../icons.tsx'
import { select } from '../live/selection.ts'
import { useLive } from '../live/use-live.ts'
import { EmptyList } from './empty-list.tsx'
import { type Filter, NO_FILTER } from './filter.ts'
import { FilterBar } from './filter-bar.tsx'
import { describeProgress, formatClock, formatMoment } from './format.ts'
import classes from './list.module.css'
import { ListMenu } from './list-menu.tsx'
import { StatusBadge } from './status-badge.tsx'
import type { ShownRequests } from './use-shown-requests.ts'

interface RequestListProps {
  filter: Filter
  onFilter: (filter: Filter) => void
  shown: ShownRequests
  selected: string | undefined
}

export function RequestList({ filter, onFilter, shown, selected }: RequestListProps) {
  const total = useLive(({ requests }) => requests.length)
  const isLoaded = useLive(({ info }) => info !== undefined)
  const isFiltered = Object.values(filter).some(Boolean)
  return (
    <section className={classes.pane} aria-label="Requests">
      <Stack gap="xs" className={classes.head}>
        <Group justify="space-between" gap="xs" wrap="nowrap">
          <Title order={1} size="h4" tabIndex={-1}>
            Requests
          </Title>
          <Group gap="xs" wrap="nowrap">
            <Text size="xs" c="dimmed" className="tabular" role="status">
              {isFiltered
                ? `${formatCount(shown.requests.length)} of ${formatCount(total)}`
                : formatCount(total)}
            </Text>
            {shown.isSearching && <Loader size="xs" aria-label="Searching" />}
            <ListMenu filter={filter} isFiltered={isFiltered} count={shown.requests.length} />
          </Group>
        </Group>
        <FilterBar filter={filter} onChange={onFilter} />
        <ErrorAlert error={shown.error} />
      </Stack>
      {total === 0 ? (
        isLoaded ? (
          <EmptyList />
        ) : (
          <output aria-label="Loading" className={classes.loading}>
            <SkeletonRows count={6} />
          </output>
        )
      ) : shown.requests.length === 0 && !shown.isSearching ? (
        <NoMatch onClear={() => onFilter(NO_FILTER)} />
      ) : (
        <Rows requests={shown.requests} selected={selected} />
      )}
    </section>
  )
}

const NoMatch = ({ onClear }: { onClear: () => void }) => (
  <EmptyState
    icon={<SearchIcon size={36} />}
    title="No request matches"
    action={
      <Button variant="default" onClick={onClear}>
        Clear search and filter
      </Button>
    }
  >
    The search looks into headers, bodies and messages, except for masked values.
  </EmptyState>
)

function Rows({
  requests,
  selected,
}: {
  requests: readonly ExchangeSummary[]
  selected: string | undefined
}) {
  const showsTunnel = useLive(({ tunnels }) => tunnels.length > 1)
  const list = useRef<HTMLUListElement>(null)
  useEffect(() => {
    if (selected === undefined) return
    const row = list.current?.querySelector<HTMLElement>('[aria-current=true]')
    row?.scrollIntoView({ block: 'nearest' })
    if (list.current?.contains(document.activeElement)) row?.focus({ preventScroll: true })
  }, [selected])
  return (
    <ul className={classes.list} ref={list}>
      {requests.map((request) => (
        <Row
          key={request.id}
          request={request}
          isSelected={request.id === selected}
          showsTunnel={showsTunnel}
        />
      ))}
    </ul>
  )
}

interface RowProps {
  request: ExchangeSummary
  isSelected: boolean
  showsTunnel: boolean
}

/** Memoized: an event renders only the rows of its requests. */
const Row = memo(function Row({ request, isSelected, showsTunnel }: RowProps) {
  const { id, method, path, startedAt, tunnel, responseBytes, messages, replayOf, edited } = request
  const details = [
    showsTunnel && tunnel,
    describeProgress(request),
    messages > 0
      ? `${formatCount(messages)} ${messages === 1 ? 'message' : 'messages'}`
      : formatBytes(responseBytes),
  ]
  return (
    <li>
      <button
        type="button"
        className={classes.row}
        aria-current={isSelected}
        data-request={id}
        onClick={() => select(id)}
      >
        <StatusBadge request={request} className={classes.status ?? ''} />
        <span className={classes.text}>
          <span className={classes.path}>
            <b>{method}</b> {path}
          </span>
          <span className={classes.details}>
            {details.filter(Boolean).join(' · ')}
            {replayOf && (
              <span className={classes.replay}>
                {' · '}
                <ReplayIcon size={12} /> {edited ? 'Edited replay' : 'Replay'}
              </span>
            )}
          </span>
        </span>
        <time className={classes.time} dateTime={startedAt} title={formatMoment(startedAt)}>
          {formatClock(startedAt)}
        </time>
      </button>
    </li>
  )
})
