// Public address of a tunnel: a link for HTTP, plain text for TCP, with a button that copies it.
import { Anchor, Badge, Group, Text } from '@mantine/core'
import { CopyIconButton } from '../components/copy.tsx'
import type { Tunnel } from '../queries.ts'
import classes from './tunnels.module.css'

/** Clients of TCP services expect a host and a port, not a URL. */
export const publicAddress = ({ type, url }: Tunnel): string =>
  type === 'tcp' ? new URL(url).host : url.replace(/\/$/, '')

/** `isNamed`: the name is already next to the address, which is smaller then. */
export function TunnelAddress({ tunnel, isNamed = false }: { tunnel: Tunnel; isNamed?: boolean }) {
  const address = publicAddress(tunnel)
  const { host } = new URL(tunnel.url)
  const text = isNamed ? host : <HostName name={tunnel.name} host={host} />
  const size = isNamed ? 'xs' : 'sm'
  return (
    <Group gap={4} wrap="nowrap" miw={0}>
      {tunnel.type === 'tcp' ? (
        <Text span size={size} className={classes.host ?? ''}>
          {text}
        </Text>
      ) : (
        <Anchor href={tunnel.url} target="_blank" rel="noreferrer" size={size} className={classes.host ?? ''}>
          {text}
        </Anchor>
      )}
      <CopyIconButton text={address} name={`Copy ${address}`} />
    </Group>
  )
}

/** The name of the tunnel stands out in its host name. */
export function HostName({ name, host }: { name: string; host: string }) {
  const rest = host.startsWith(`${name}.`) ? host.slice(name.length) : ''
  return (
    <Text span size="sm" className={classes.host ?? ''}>
      <strong>{rest ? name : host}</strong>
      <span className={classes.domain}>{rest}</span>
    </Text>
  )
}

export function TunnelBadges({ tunnel }: { tunnel: Tunnel }) {
  return (
    <Group gap={4}>
      <Badge color={tunnel.type === 'tcp' ? 'amber' : 'teal'} size="sm">
        {tunnel.type.toUpperCase()}
      </Badge>
      {tunnel.pool && (
        <Badge color="gray" size="sm" title="Several clients may share this name">
          Pool
        </Badge>
      )}
    </Group>
  )
}
