// The bar at the top: the tunnels, whether the page is live, keys and color scheme.
import { ActionIcon, Anchor, Group, Text } from '@mantine/core'
import { memo } from 'react'
import { CopyIconButton } from '../../components/copy.tsx'
import { Logo } from '../../icons.tsx'
import { ColorSchemeMenu } from '../../shell/color-scheme-menu.tsx'
import shell from '../../shell/shell.module.css'
import { useLive } from '../live/use-live.ts'
import classes from './header.module.css'

export const Header = memo(function Header({ onShowKeys }: { onShowKeys: () => void }) {
  const tunnels = useLive((state) => state.tunnels)
  return (
    <header className={`${shell.header} ${classes.header}`}>
      <Group gap="sm" wrap="nowrap" h="100%">
        <span className={shell.logo}>
          <Logo />
          <Text span inherit visibleFrom="xs">
            adit
          </Text>
        </span>
        <div className={classes.tunnels}>
          {tunnels.map(({ name, url, target }) => (
            <Tunnel key={`${name} ${target}`} url={url} target={target} />
          ))}
        </div>
        <Status />
        <ActionIcon
          variant="transparent"
          size="lg"
          className={shell.headerButton ?? ''}
          aria-label="Keyboard shortcuts"
          title="Keyboard shortcuts (?)"
          visibleFrom="sm"
          onClick={onShowKeys}
        >
          <Text span fw={700}>
            ?
          </Text>
        </ActionIcon>
        <ColorSchemeMenu />
      </Group>
    </header>
  )
})

const Tunnel = ({ url, target }: { url: string; target: string }) => (
  <span className={classes.tunnel}>
    {url === '' ? (
      <span className={classes.url}>Opening …</span>
    ) : (
      <>
        <Anchor href={url} target="_blank" rel="noreferrer" c="inherit" inherit className={classes.url ?? ''}>
          {url.replace(/^https?:\/\//, '')}
        </Anchor>
        <CopyIconButton text={url} name={`Copy ${url}`} />
      </>
    )}
    <Text span inherit visibleFrom="md" className={classes.target ?? ''}>
      → {target.replace(/^https?:\/\//, '')}
    </Text>
  </span>
)

const statusNames = { connecting: 'Connecting', live: 'Live', disconnected: 'Disconnected' } as const

function Status() {
  const status = useLive((state) => state.status)
  return (
    <span role="status" className={classes.status} title={statusNames[status]}>
      <span className={classes.dot} data-status={status} />
      <span className={classes.statusName}>{statusNames[status]}</span>
    </span>
  )
}
