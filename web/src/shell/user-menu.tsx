import { Menu, Text, UnstyledButton } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Link, useLocation } from 'wouter'
import { call } from '../api.ts'
import { showToast } from '../components/toast.tsx'
import { BookIcon, SignOutIcon, UserIcon } from '../icons.tsx'
import { docsUrl } from '../paths.ts'
import { queryClient } from '../queries.ts'
import { useSession } from '../session.tsx'
import classes from './shell.module.css'

const initials = (name: string) =>
  name
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => [...word][0])
    .filter((_, index, all) => index === 0 || index === all.length - 1)
    .join('')
    .toUpperCase()

export function UserMenu() {
  const { user } = useSession()
  const [, navigate] = useLocation()
  const signOut = useMutation({
    mutationFn: () => call('session.end'),
    onSuccess: ({ providerUrl }) => {
      // The provider redirects back to the sign-in page.
      if (providerUrl !== null) return location.assign(providerUrl)
      navigate('/sign-in')
      queryClient.clear()
      showToast('Signed out.')
    },
  })
  return (
    <Menu width={260}>
      <Menu.Target>
        <UnstyledButton className={classes.headerButton} p={4} aria-label={`Account menu: ${user.name}`}>
          <span className={classes.avatar} data-initials={initials(user.name)} />
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <Text size="sm" fw={600} c="var(--mantine-color-text)" lineClamp={2}>
            {user.name}
          </Text>
          <Text size="xs" truncate>
            {user.email}
          </Text>
        </Menu.Label>
        <Menu.Divider />
        <Menu.Item component={Link} href="/account" leftSection={<UserIcon />}>
          Account
        </Menu.Item>
        <Menu.Item component="a" href={docsUrl} leftSection={<BookIcon />}>
          API reference
        </Menu.Item>
        <Menu.Divider />
        <Menu.Item closeMenuOnClick={false} leftSection={<SignOutIcon />} onClick={() => signOut.mutate()}>
          Sign out
        </Menu.Item>
        {signOut.error && (
          <Text size="xs" c="var(--mantine-color-error)" px="sm" py={4} role="alert">
            {signOut.error.message}
          </Text>
        )}
      </Menu.Dropdown>
    </Menu>
  )
}
