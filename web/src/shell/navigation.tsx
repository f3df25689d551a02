import { Divider, NavLink, Stack } from '@mantine/core'
import type { ReactNode } from 'react'
import { Link, useLocation } from 'wouter'
import {
  KeyIcon,
  LogIcon,
  OverviewIcon,
  SettingsIcon,
  TunnelIcon,
  UsageIcon,
  UserIcon,
  UsersIcon,
  WebhookIcon,
} from '../icons.tsx'
import type { Membership } from '../session.tsx'
import classes from './shell.module.css'

const pages: { name: string; path: string; icon: ReactNode; role?: Membership['role'] }[] = [
  { name: 'Overview', path: '', icon: <OverviewIcon /> },
  { name: 'Tunnels', path: '/tunnels', icon: <TunnelIcon /> },
  { name: 'API keys', path: '/keys', icon: <KeyIcon /> },
  { name: 'Usage', path: '/usage', icon: <UsageIcon /> },
  { name: 'Members', path: '/members', icon: <UsersIcon /> },
  { name: 'Webhooks', path: '/webhooks', icon: <WebhookIcon />, role: 'owner' },
  { name: 'Audit log', path: '/audit', icon: <LogIcon /> },
  { name: 'Settings', path: '/settings', icon: <SettingsIcon /> },
]

export function Navigation({ workspace }: { workspace: Membership | null }) {
  return (
    <Stack gap={4}>
      {workspace &&
        pages
          .filter(({ role }) => role === undefined || role === workspace.role)
          .map(({ name, path, icon }) => (
            <PageLink key={name} name={name} to={`/w/${workspace.slug}${path}`} icon={icon} />
          ))}
      {workspace && <Divider my="xs" color="var(--adit-border)" />}
      <PageLink name="Account" to="/account" icon={<UserIcon />} />
    </Stack>
  )
}

function PageLink({ name, to, icon }: { name: string; to: string; icon: ReactNode }) {
  const [path] = useLocation()
  // Also below it, except for the overview, which all pages of the workspace are below.
  const isCurrent = path === to || (to.split('/').length > 3 && path.startsWith(`${to}/`))
  return (
    <NavLink
      component={Link}
      href={to}
      label={name}
      leftSection={icon}
      className={classes.navLink ?? ''}
      aria-current={isCurrent ? 'page' : undefined}
    />
  )
}
