// The request or the response: headers, body, trailers.
import { Group, Paper, Text, Title } from '@mantine/core'
import type { Exchange } from '../../../../src/inspector/api.ts'
import { BodySection } from './body-section.tsx'
import classes from './detail.module.css'
import { HeaderTable } from './header-table.tsx'

interface PartSectionProps {
  exchange: Exchange
  of: 'request' | 'response'
}

export function PartSection({ exchange, of }: PartSectionProps) {
  const part = exchange[of]
  const { response } = exchange
  const startLine =
    of === 'request'
      ? `${exchange.method} HTTP/${exchange.request.httpVersion}`
      : response && `HTTP/${response.httpVersion} ${response.status} ${response.reason}`
  const title = of === 'request' ? 'Request' : 'Response'
  return (
    <Paper component="section" className={classes.part ?? ''} aria-label={title}>
      <Group className={classes.partHead ?? ''} justify="space-between" gap="xs">
        <Title order={3} size="h6">
          {title}
        </Title>
        <Text size="xs" c="dimmed" className="mono">
          {startLine}
        </Text>
      </Group>
      {part ? (
        <>
          <HeaderTable headers={part.headers} label={`${title} headers`} />
          <BodySection id={exchange.id} of={of} body={part.body} />
          {part.trailers.length > 0 && <HeaderTable headers={part.trailers} label={`${title} trailers`} />}
        </>
      ) : (
        <Text size="sm" c="dimmed" p="md">
          {exchange.state === 'pending' ? 'No response yet.' : 'There was no response.'}
        </Text>
      )}
    </Paper>
  )
}
