// Compares the response of a request with that of another one, at first the one that it replays.
import { Modal, NativeSelect, Stack, Text } from '@mantine/core'
import { useMemo, useState } from 'react'
import type { Exchange, ExchangeSummary } from '../../../../src/inspector/api.ts'
import { QueryResult, SkeletonRows } from '../../components/lists/query-states.tsx'
import { useIsPhone } from '../../components/use-is-phone.ts'
import { useExchange } from '../detail/use-exchange.ts'
import { describeStatus, formatClock } from '../list/format.ts'
import { useLive } from '../live/use-live.ts'
import { DiffView } from './diff-view.tsx'
import { compareResponses } from './differences.ts'

interface CompareDialogProps {
  exchange: Exchange
  opened: boolean
  onClose: () => void
}

export const CompareDialog = ({ exchange, opened, onClose }: CompareDialogProps) => (
  <Modal opened={opened} onClose={onClose} title="Compare responses" size="xl" fullScreen={useIsPhone()}>
    {opened && <Comparison exchange={exchange} />}
  </Modal>
)

/** The original of a replay, or the request before with the same method and path. */
function findOther(exchange: Exchange, others: readonly ExchangeSummary[]): ExchangeSummary | undefined {
  const [path] = exchange.path.split('?', 1)
  return (
    others.find(({ id }) => id === exchange.replayOf) ??
    others.find(({ replayOf }) => replayOf === exchange.id) ??
    others.find((other) => other.method === exchange.method && other.path.split('?', 1)[0] === path) ??
    others[0]
  )
}

function Comparison({ exchange }: { exchange: Exchange }) {
  const requests = useLive((state) => state.requests)
  const others = requests.filter(({ id, kind }) => id !== exchange.id && kind !== 'websocket')
  const [chosen, setChosen] = useState(() => findOther(exchange, others)?.id)
  const other = others.find(({ id }) => id === chosen)
  if (!other) return <Text size="sm">There is no other request to compare with.</Text>
  return (
    <Stack>
      <NativeSelect
        label="Compare with"
        data={others.map((request) => ({ value: request.id, label: describe(request) }))}
        value={other.id}
        onChange={(event) => setChosen(event.currentTarget.value)}
      />
      <Differences key={other.id} exchange={exchange} other={other} />
    </Stack>
  )
}

const PATH_CHARS = 60

function describe(request: ExchangeSummary): string {
  const { method, path, startedAt, replayOf } = request
  const shown = path.length > PATH_CHARS ? `${path.slice(0, PATH_CHARS)}…` : path
  const start = `${formatClock(startedAt)} · ${describeStatus(request).text} ${method} ${shown}`
  return replayOf ? `${start} (replay)` : start
}

function Differences({ exchange, other }: { exchange: Exchange; other: ExchangeSummary }) {
  // The older one first: removed and added are in the order of time.
  const isOlder = Date.parse(other.startedAt) <= Date.parse(exchange.startedAt)
  const [older, newer] = isOlder ? [other, exchange] : [exchange, other]
  // Masked, even if the values of one of them are shown: they would be differences.
  const before = useExchange(older.id, older, false)
  const after = useExchange(newer.id, newer, false)
  return (
    <QueryResult query={before} skeleton={<SkeletonRows />}>
      {(a) => (
        <QueryResult query={after} skeleton={<SkeletonRows />}>
          {(b) => <Result before={a} after={b} />}
        </QueryResult>
      )}
    </QueryResult>
  )
}

function Result({ before, after }: { before: Exchange; after: Exchange }) {
  const compared = useMemo(() => compareResponses(before, after), [before, after])
  const { status, headers, body, isPartial, hasMasked } = compared
  return (
    <Stack gap="sm">
      <Text size="sm" c="dimmed">
        From {formatClock(before.startedAt)} (−) to {formatClock(after.startedAt)} (+).
        {isPartial && ' Only the recorded part of the bodies is compared.'}
        {hasMasked && ' Masked values are not compared.'}
      </Text>
      <DiffView title="Status" lines={status} />
      <DiffView title="Headers" lines={headers} />
      <DiffView title="Body" lines={body} />
    </Stack>
  )
}
