// Open tunnels as a table, or as cards on a phone. Rows are memoized: a poll renders only those that changed.
import { Group, Paper, Stack, Table, Text, VisuallyHidden } from '@mantine/core'
import { memo } from 'react'
import { Detail } from '../components/detail.tsx'
import { useRemovalDialog } from '../components/dialogs/use-dialog.ts'
import { RelativeTime } from '../components/relative-time.tsx'
import { useIsPhone } from '../components/use-is-phone.ts'
import type { Tunnel } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { CloseTunnelDialog } from './close-tunnel-dialog.tsx'
import {
  CloseButton,
  edgeNames,
  inProgress,
  KeyLabel,
  type OnClose,
  Requests,
  Traffic,
  TunnelTitle,
} from './tunnel-cells.tsx'
import classes from './tunnels.module.css'

export function TunnelList({ tunnels }: { tunnels: readonly Tunnel[] }) {
  const isPhone = useIsPhone()
  const closing = useRemovalDialog<Tunnel>()
  return (
    <>
      {isPhone ? (
        <Stack component="ul" gap="sm" p={0} m={0} aria-label="Open tunnels">
          {tunnels.map((tunnel) => (
            <TunnelCard key={tunnel.id} tunnel={tunnel} onClose={closing.open} />
          ))}
        </Stack>
      ) : (
        <TunnelTable tunnels={tunnels} onClose={closing.open} />
      )}
      <CloseTunnelDialog
        tunnel={closing.item}
        opened={closing.opened}
        onClose={closing.close}
        nextFocus={closing.nextFocus}
      />
    </>
  )
}

function TunnelTable({ tunnels, onClose }: { tunnels: readonly Tunnel[]; onClose: OnClose }) {
  const { canManage } = useWorkspace()
  return (
    <Paper>
      <Table.ScrollContainer minWidth={860} type="native">
        <Table className={classes.table ?? ''} horizontalSpacing="sm" aria-label="Open tunnels">
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">Public address</Table.Th>
              <Table.Th scope="col" w={158}>
                Key and client
              </Table.Th>
              <Table.Th scope="col" w={96}>
                Edge
              </Table.Th>
              <Table.Th scope="col" w={124}>
                Opened
              </Table.Th>
              <Table.Th scope="col" w={108} ta="right">
                Requests
              </Table.Th>
              <Table.Th scope="col" w={112} ta="right">
                Traffic
              </Table.Th>
              {canManage && (
                <Table.Th scope="col" w={98}>
                  <VisuallyHidden>Actions</VisuallyHidden>
                </Table.Th>
              )}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {tunnels.map((tunnel) => (
              <TunnelRow key={tunnel.id} tunnel={tunnel} onClose={onClose} />
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Paper>
  )
}

interface TunnelProps {
  tunnel: Tunnel
  onClose: OnClose
}

/** `onClose` does the same for each render, so only a changed tunnel is a reason to render. */
const isSameTunnel = (previous: TunnelProps, next: TunnelProps) => previous.tunnel === next.tunnel

const TunnelRow = memo(function TunnelRow({ tunnel, onClose }: TunnelProps) {
  const { canManage } = useWorkspace()
  return (
    <Table.Tr>
      <Table.Th scope="row" fw={400}>
        <TunnelTitle tunnel={tunnel} />
      </Table.Th>
      <Table.Td>
        <KeyLabel tunnel={tunnel} />
        <Text size="xs" c="dimmed">
          {tunnel.client.address}
        </Text>
        {tunnel.client.version && (
          <Text size="xs" c="dimmed">
            {tunnel.client.version}
          </Text>
        )}
      </Table.Td>
      <Table.Td>{edgeNames(tunnel)}</Table.Td>
      <Table.Td className="nowrap">
        <RelativeTime at={tunnel.openedAt} />
      </Table.Td>
      <Table.Td ta="right" className="tabular">
        <Requests tunnel={tunnel} />
        <Text size="xs" c="dimmed">
          {inProgress(tunnel)}
        </Text>
      </Table.Td>
      <Table.Td ta="right" className="tabular nowrap">
        <Traffic tunnel={tunnel} />
      </Table.Td>
      {canManage && (
        <Table.Td ta="right">
          <CloseButton tunnel={tunnel} onClose={onClose} />
        </Table.Td>
      )}
    </Table.Tr>
  )
}, isSameTunnel)

const TunnelCard = memo(function TunnelCard({ tunnel, onClose }: TunnelProps) {
  const { canManage } = useWorkspace()
  return (
    <Paper component="li" p="md" style={{ listStyle: 'none' }}>
      <Stack gap="sm">
        <TunnelTitle tunnel={tunnel} />
        <dl className={classes.facts}>
          <Detail name="Key">
            <KeyLabel tunnel={tunnel} />
          </Detail>
          <Detail name={tunnel.edges.length > 1 ? 'Edges' : 'Edge'}>{edgeNames(tunnel)}</Detail>
          <Detail name="Client">
            {tunnel.client.address}
            <Text size="xs" c="dimmed">
              {tunnel.client.version}
            </Text>
          </Detail>
          <Detail name="Opened">
            <RelativeTime at={tunnel.openedAt} />
          </Detail>
          <Detail name="Requests">
            <Requests tunnel={tunnel} />
            <Text size="xs" c="dimmed">
              {inProgress(tunnel)}
            </Text>
          </Detail>
          <Detail name="Traffic">
            <Traffic tunnel={tunnel} />
          </Detail>
        </dl>
        {canManage && (
          <Group justify="flex-end">
            <CloseButton tunnel={tunnel} onClose={onClose} />
          </Group>
        )}
      </Stack>
    </Paper>
  )
}, isSameTunnel)
