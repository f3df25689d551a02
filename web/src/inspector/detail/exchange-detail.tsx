// One request: what can be done with it, its facts, its messages, request and response.
import { Alert, Button, Group, Stack, Text, Title } from '@mantine/core'
import { memo, useState } from 'react'
import type { Exchange, ExchangeSummary } from '../../../../src/inspector/api.ts'
import { EmptyState, LoadError, SkeletonRows } from '../../components/lists/query-states.tsx'
import { BackIcon, SearchIcon, WarningIcon } from '../../icons.tsx'
import type { Dialog } from '../app.tsx'
import { CompareDialog } from '../compare/compare-dialog.tsx'
import { StatusBadge } from '../list/status-badge.tsx'
import { select } from '../live/selection.ts'
import { useLive } from '../live/use-live.ts'
import { EditDialog } from '../replay/edit-dialog.tsx'
import type { Replay } from '../replay/use-replay.ts'
import classes from './detail.module.css'
import { Facts } from './facts.tsx'
import { Messages } from './messages.tsx'
import { PartSection } from './part-section.tsx'
import { SignatureDialog } from './signature-dialog.tsx'
import { Toolbar } from './toolbar.tsx'
import { useExchange } from './use-exchange.ts'

interface ExchangeDetailProps {
  id: string
  /** Undefined if it was evicted. */
  summary: ExchangeSummary | undefined
  dialog: Dialog
  onDialog: (dialog: Dialog) => void
  replay: Replay
}

/** Memoized: the list changes with every request. */
export const ExchangeDetail = memo(function ExchangeDetail(props: ExchangeDetailProps) {
  const { id, summary, dialog, onDialog, replay } = props
  const [isRevealed, setRevealed] = useState(false)
  const query = useExchange(id, summary, isRevealed)
  const isEvicted = useLive(({ info }) => info !== undefined) && !summary
  const exchange = query.data
  const close = () => onDialog(null)
  return (
    <section className={classes.pane} aria-label="Selected request">
      <Button
        hiddenFrom="sm"
        variant="subtle"
        size="xs"
        mb="xs"
        leftSection={<BackIcon size={16} />}
        onClick={() => select(undefined)}
      >
        All requests
      </Button>
      {exchange ? (
        <Stack gap="md">
          <Heading exchange={exchange} />
          {isEvicted ? (
            <Alert color="amber" icon={<WarningIcon />} title="No longer kept">
              Newer requests took its place, or it was deleted. This page still shows what it had loaded.
            </Alert>
          ) : (
            <Toolbar
              exchange={exchange}
              isRevealed={isRevealed}
              onReveal={setRevealed}
              onDialog={onDialog}
              replay={replay}
            />
          )}
          <Problems exchange={exchange} />
          <Facts exchange={exchange} />
          {exchange.kind !== 'http' && <Messages id={id} count={summary?.messages ?? exchange.messages} />}
          <PartSection exchange={exchange} of="request" />
          <PartSection exchange={exchange} of="response" />
          <EditDialog exchange={exchange} opened={dialog === 'edit'} onClose={close} />
          <CompareDialog exchange={exchange} opened={dialog === 'compare'} onClose={close} />
          <SignatureDialog exchange={exchange} opened={dialog === 'signature'} onClose={close} />
        </Stack>
      ) : isEvicted && query.error ? (
        <EmptyState icon={<SearchIcon size={36} />} title="This request is no longer kept">
          Newer requests took its place, or it was deleted.
        </EmptyState>
      ) : query.error ? (
        <LoadError error={query.error} retry={query.refetch} isRetrying={query.isFetching} />
      ) : (
        <output aria-label="Loading">
          <SkeletonRows count={6} />
        </output>
      )}
    </section>
  )
})

const Heading = ({ exchange }: { exchange: Exchange }) => (
  <Group gap="sm" align="flex-start" wrap="nowrap">
    <StatusBadge request={exchange} />
    <Title order={2} size="h5" className="mono" tabIndex={-1} flex={1} miw={0}>
      {exchange.method} {exchange.path}
    </Title>
  </Group>
)

/** Why the record is not complete. */
function Problems({ exchange: { state, problem } }: { exchange: Exchange }) {
  if (state === 'aborted')
    return (
      <Alert color="red" icon={<WarningIcon />} title="Aborted">
        {problem ?? 'The connection ended before the response was complete.'}
      </Alert>
    )
  if (problem === undefined) return null
  const title = state === 'complete' ? 'Later requests were not recorded' : 'Not all of it was recorded'
  return (
    <Alert color="amber" icon={<WarningIcon />} title={title}>
      <Text size="sm">{problem}</Text>
    </Alert>
  )
}
