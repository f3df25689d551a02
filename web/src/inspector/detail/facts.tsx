// When and where a request arrived, and how long it took.
import { Anchor, Group, Text } from '@mantine/core'
import type { Exchange } from '../../../../src/inspector/api.ts'
import { CopyIconButton } from '../../components/copy.tsx'
import { Detail } from '../../components/detail.tsx'
import { formatBytes } from '../../format.ts'
import { describeProgress, formatDuration, formatMoment, kindNames } from '../list/format.ts'
import { select } from '../live/selection.ts'
import classes from './detail.module.css'

export function Facts({ exchange }: { exchange: Exchange }) {
  const { firstByteMs, lastByteMs, requestBytes, responseBytes, kind, replayOf, edited } = exchange
  return (
    <dl className={classes.facts}>
      <Detail name="ID">
        <Group gap={4} component="span">
          {exchange.id}
          <CopyIconButton text={exchange.id} name="Copy ID" />
        </Group>
      </Detail>
      <Detail name="Received">{formatMoment(exchange.startedAt)}</Detail>
      <Detail name="First byte">{firstByteMs === undefined ? '—' : formatDuration(firstByteMs)}</Detail>
      <Detail name="Last byte">
        {lastByteMs === undefined ? describeProgress(exchange) : formatDuration(lastByteMs)}
      </Detail>
      <Detail name="Request / response">
        {formatBytes(requestBytes)} / {formatBytes(responseBytes)}
      </Detail>
      <Detail name="Kind">{kindNames[kind]}</Detail>
      <Detail name="Tunnel">{exchange.tunnel || '—'}</Detail>
      <Detail name="Local server">{exchange.target.replace(/^https?:\/\//, '')}</Detail>
      <div className={classes.wide}>
        <Text component="dt" size="xs" c="dimmed" fw={600}>
          Host
        </Text>
        <Text component="dd" m={0} size="sm">
          {exchange.host || '—'}
        </Text>
      </div>
      {replayOf && (
        <Detail name={edited ? 'Edited replay of' : 'Replay of'}>
          <Anchor href={`#${replayOf}`} inherit onClick={(event) => follow(event, replayOf)}>
            {replayOf}
          </Anchor>
        </Detail>
      )}
    </dl>
  )
}

function follow(event: { preventDefault(): void }, id: string): void {
  event.preventDefault()
  select(id)
}
