import { Paper, SimpleGrid, Text } from '@mantine/core'
import type { Output } from '../api.ts'
import { exactBytes, exactCount, readableBytes, shortCount } from '../figures.ts'
import classes from './totals.module.css'

export function Totals({ usage }: { usage: Output<'usage.read'> }) {
  const tiles = [
    { name: 'Requests', shown: shortCount(usage.requests), exact: exactCount(usage.requests) },
    { name: 'Bytes in', shown: readableBytes(usage.bytesIn), exact: exactBytes(usage.bytesIn) },
    { name: 'Bytes out', shown: readableBytes(usage.bytesOut), exact: exactBytes(usage.bytesOut) },
    { name: 'Peak tunnels', shown: shortCount(usage.peakTunnels), exact: exactCount(usage.peakTunnels) },
  ]
  return (
    <SimpleGrid component="dl" cols={{ base: 2, md: 4 }} spacing="md" m={0}>
      {tiles.map(({ name, shown, exact }) => (
        <Paper key={name} p="md" className={classes.tile ?? ''}>
          <Text component="dt" size="sm" c="dimmed">
            {name}
          </Text>
          <dd className={classes.number} title={exact}>
            {shown}
          </dd>
        </Paper>
      ))}
    </SimpleGrid>
  )
}
