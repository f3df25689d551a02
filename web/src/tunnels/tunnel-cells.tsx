// What the table and the cards show of a tunnel.
import { Badge, Button, Group, Text } from '@mantine/core'
import type { Output } from '../api.ts'
import { dangerOutline } from '../components/dialogs/danger-outline.ts'
import { removeButtonProps } from '../components/focus.ts'
import { formatBytes, formatBytesExact, formatCount, formatCountShort } from '../format.ts'
import type { Tunnel } from '../queries.ts'
import { AccessSummary } from './access-summary.tsx'
import { isNameInHost, publicAddress, TunnelAddress, TunnelBadges } from './tunnel-address.tsx'

export type OnClose = (tunnel: Tunnel, button: HTMLElement) => void

export const formatTunnelCount = ({ tunnels, isComplete }: Output<'tunnels.list'>): string =>
  `${formatCount(tunnels.length)}${isComplete ? '' : '+'}`

export const TunnelTitle = ({ tunnel }: { tunnel: Tunnel }) => (
  <>
    <Group gap={6}>
      {!isNameInHost(tunnel) && (
        <Text size="sm" fw={650}>
          {tunnel.name}
        </Text>
      )}
      <TunnelAddress tunnel={tunnel} />
      <TunnelBadges tunnel={tunnel} />
    </Group>
    <AccessSummary
      password={tunnel.access.basicAuth ? 'Password required' : undefined}
      allowIp={tunnel.access.allowIp}
    />
  </>
)

export function KeyLabel({ tunnel: { key } }: { tunnel: Tunnel }) {
  if (key.label) return <Text size="sm">{key.label}</Text>
  return (
    <Text size="sm" fs="italic" c="dimmed" title={key.id}>
      {key.label === null ? 'Unknown key' : 'No label'}
    </Text>
  )
}

export const edgeNames = ({ edges }: Tunnel): string => edges.map(({ name }) => name).join(', ')

export const Requests = ({ tunnel: { requests } }: { tunnel: Tunnel }) => (
  <span title={formatCount(requests)}>{formatCountShort(requests)}</span>
)

/** The number is from the last report: short requests between two reports are not seen. */
export const inProgress = ({ streams }: Tunnel): string => `${formatCountShort(streams)} in progress`

export const Traffic = ({ tunnel: { bytesIn, bytesOut } }: { tunnel: Tunnel }) => (
  <>
    <div title={formatBytesExact(bytesIn)}>{formatBytes(bytesIn)} in</div>
    <div title={formatBytesExact(bytesOut)}>{formatBytes(bytesOut)} out</div>
  </>
)

export function CloseButton({ tunnel, onClose }: { tunnel: Tunnel; onClose: OnClose }) {
  if (tunnel.closeRequestedAt) return <Badge color="gray">Closing</Badge>
  return (
    <Button
      size="xs"
      {...dangerOutline}
      {...removeButtonProps}
      aria-label={`Close ${publicAddress(tunnel)}`}
      onClick={(event) => onClose(tunnel, event.currentTarget)}
    >
      Close
    </Button>
  )
}
