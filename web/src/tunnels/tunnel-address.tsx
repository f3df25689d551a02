// Public address of a tunnel: a link for HTTP, plain text for TCP, with a button that copies it.
import { Anchor, Badge, Group, Text } from '@mantine/core'
import { CopyIconButton } from '../components/copy.tsx'
import type { Tunnel } from '../queries.ts'
import classes from './tunnels.module.css'

/** Clients of TCP services expect a host and a port, not a URL. */
export const publicAddress = ({ url }: Pick<Tunnel, 'url'>): string =>
  url.startsWith('tcp:') ? new URL(url).host : url.replace(/\/$/, '')

/** If not, the name has to be shown next to the address. */
export const isNameInHost = ({ name, url }: Tunnel): boolean => new URL(url).host.startsWith(`${name}.`)

export function TunnelAddress({ tunnel }: { tunnel: Tunnel }) {
  const address = publicAddress(tunnel)
  const text = <HostName name={tunnel.name} host={new URL(tunnel.url).host} />
  return (
    <Group gap={4} wrap="nowrap" miw={0}>
      {tunnel.type === 'tcp' ? (
        text
      ) : (
        <Anchor href={tunnel.url} target="_blank" rel="noreferrer" size="sm" className={classes.host ?? ''}>
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
