import { Button, Paper, Stack, Table, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { formatBytes, formatBytesExact, formatCount, formatDay } from '../format.ts'
import { ChevronIcon } from '../icons.tsx'
import type { Series } from '../queries.ts'
import classes from './usage.module.css'

export function UsageTable({ series }: { series: Series }) {
  const [opened, { toggle }] = useDisclosure()
  return (
    <Stack align="flex-start">
      <Button
        variant="subtle"
        leftSection={<ChevronIcon />}
        aria-expanded={opened}
        aria-controls={opened ? 'usage-table' : undefined}
        onClick={toggle}
      >
        {opened ? 'Hide table' : 'Show daily usage as a table'}
      </Button>
      {opened && (
        <Paper id="usage-table" w="100%">
          <Text size="xs" c="dimmed" px="md" pt="sm" hiddenFrom="sm">
            Scroll sideways to see all columns →
          </Text>
          <Rows series={series} />
        </Paper>
      )}
    </Stack>
  )
}

/** Plain cells: a year has about two thousand, and each of Mantine's is a component. */
function Rows({ series }: { series: Series }) {
  return (
    <Table.ScrollContainer minWidth={600} type="native" tabIndex={0} role="region" aria-label="Usage per day">
      <Table className={`tabular nowrap ${classes.rows}`} captionSide="top">
        <Table.Caption>Usage per day, newest first</Table.Caption>
        <thead>
          <tr>
            {['Day', 'Requests', 'Bytes in', 'Bytes out', 'Peak tunnels', 'Events'].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {series.toReversed().map(({ day, requests, bytesIn, bytesOut, peakTunnels, events }) => (
            <tr key={day}>
              <th scope="row">{formatDay(day)}</th>
              <td>{formatCount(requests)}</td>
              <td title={formatBytesExact(bytesIn)}>{formatBytes(bytesIn)}</td>
              <td title={formatBytesExact(bytesOut)}>{formatBytes(bytesOut)}</td>
              <td>{formatCount(peakTunnels)}</td>
              <td>{formatCount(events)}</td>
            </tr>
          ))}
        </tbody>
      </Table>
    </Table.ScrollContainer>
  )
}
