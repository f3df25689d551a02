import { Divider, NavLink, Stack } from '@mantine/core'
import type { ReactNode } from 'react'
import { Link, useLocation } from 'wouter'
import { KeyIcon, LogIcon, OverviewIcon, PeopleIcon, PersonIcon, UsageIcon } from '../icons.tsx'
import type { Membership } from '../session.tsx'
import classes from './shell.module.css'

const pages = [
  { name: 'Overview', under: '', icon: <OverviewIcon /> },
  { name: 'API keys', under: '/keys', icon: <KeyIcon /> },
  { name: 'Usage', under: '/usage', icon: <UsageIcon /> },
  { name: 'People', under: '/people', icon: <PeopleIcon /> },
  { name: 'Audit log', under: '/audit', icon: <LogIcon /> },
]

export function Navigation({ workspace }: { workspace: Membership | null }) {
  return (
    <Stack gap={4}>
      {workspace &&
        pages.map(({ name, under, icon }) => (
          <Entry key={name} name={name} to={`/w/${workspace.slug}${under}`} icon={icon} />
        ))}
      {workspace && <Divider my="xs" color="var(--adit-line)" />}
      <Entry name="Account" to="/account" icon={<PersonIcon />} />
    </Stack>
  )
}

function Entry({ name, to, icon }: { name: string; to: string; icon: ReactNode }) {
  const [path] = useLocation()
  return (
    <NavLink
      component={Link}
      href={to}
      label={name}
      leftSection={icon}
      className={classes.navLink ?? ''}
      aria-current={path === to ? 'page' : undefined}
    />
  )
}
