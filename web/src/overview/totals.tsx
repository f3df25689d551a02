import { Paper, SimpleGrid, Text } from '@mantine/core'
import type { Output } from '../api.ts'
import { formatBytes, formatBytesExact, formatCount, formatCountShort } from '../format.ts'
import classes from './totals.module.css'

export function Totals({ usage }: { usage: Output<'usage.read'> }) {
  const tiles = [
    { name: 'Requests', short: formatCountShort(usage.requests), exact: formatCount(usage.requests) },
    { name: 'Bytes in', short: formatBytes(usage.bytesIn), exact: formatBytesExact(usage.bytesIn) },
    { name: 'Bytes out', short: formatBytes(usage.bytesOut), exact: formatBytesExact(usage.bytesOut) },
    {
      name: 'Peak tunnels',
      short: formatCountShort(usage.peakTunnels),
      exact: formatCount(usage.peakTunnels),
    },
  ]
  return (
    <SimpleGrid component="dl" cols={{ base: 2, md: 4 }} spacing="md" m={0}>
      {tiles.map(({ name, short, exact }) => (
        <Paper key={name} p="md" className={classes.tile ?? ''}>
          <Text component="dt" size="sm" c="dimmed">
            {name}
          </Text>
          <dd className={classes.number} title={exact}>
            {short}
          </dd>
        </Paper>
      ))}
    </SimpleGrid>
  )
}
