// Layout of all pages that require a session: header, navigation and content.
import { AppShell, Box, Burger, Group, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useEffect, useRef } from 'react'
import { Link, useLocation, useRoute } from 'wouter'
import { WorkspaceNotFoundPage } from '../components/not-found.tsx'
import { Logo } from '../icons.tsx'
import { lastWorkspace, saveLastWorkspace } from '../paths.ts'
import { sessionQuery } from '../queries.ts'
import {
  firstUsable,
  type Membership,
  type Session,
  SessionProvider,
  WorkspaceProvider,
} from '../session.tsx'
import { preloadCharts } from '../usage/charts.tsx'
import { ArchivedPage } from './archived-page.tsx'
import { ColorSchemeMenu } from './color-scheme-menu.tsx'
import { LoadingScreen, OfflineBanner } from './connection-status.tsx'
import { Navigation } from './navigation.tsx'
import classes from './shell.module.css'
import { TwoFactorRequiredPage } from './two-factor-required.tsx'
import { UserMenu } from './user-menu.tsx'
import { WorkspaceMenu } from './workspace-menu.tsx'

export function Shell({ children }: { children: ReactNode }) {
  const session = useQuery(sessionQuery)
  if (!session.data) return <LoadingScreen error={session.error} retry={session.refetch} />
  return <Frame session={session.data}>{children}</Frame>
}

function Frame({ session, children }: { session: Session; children: ReactNode }) {
  const [path] = useLocation()
  const [isInWorkspace, params] = useRoute('/w/:workspace/*?')
  const [navOpened, nav] = useDisclosure()
  const main = useRef<HTMLElement>(null)
  const previousPath = useRef(path)

  const slug = isInWorkspace ? params.workspace : lastWorkspace()
  const membership = session.workspaces.find((workspace) => workspace.slug === slug)
  // Unknown workspaces and those of others look the same: neither is named in the header or the navigation.
  const isNotMember = isInWorkspace && !membership
  const current = isNotMember ? null : (membership ?? firstUsable(session.workspaces) ?? null)

  useEffect(() => {
    if (isInWorkspace && membership) saveLastWorkspace(membership.slug)
  }, [isInWorkspace, membership])

  useEffect(preloadCharts, [])

  useEffect(() => {
    if (previousPath.current === path) return
    previousPath.current = path
    nav.close()
    // As after a full page load, so that screen readers start at the top of the new page.
    window.scrollTo(0, 0)
    main.current?.focus({ preventScroll: true })
  }, [path])

  return (
    <SessionProvider value={session}>
      <WorkspaceProvider value={current}>
        {/* With the full path: a bare fragment would be relative to <base>. */}
        <a className="skip-link" href={`${location.pathname}${location.search}#content`}>
          Skip to content
        </a>
        <AppShell
          header={{ height: 60 }}
          navbar={{ width: 232, breakpoint: 'sm', collapsed: { mobile: !navOpened } }}
          padding={{ base: 'md', md: 'xl' }}
        >
          <AppShell.Header className={classes.header} withBorder={false}>
            <Group h="100%" px={{ base: 'xs', xs: 'md' }} gap="xs" wrap="nowrap">
              <Burger
                opened={navOpened}
                onClick={nav.toggle}
                hiddenFrom="sm"
                size="sm"
                color="#fff"
                aria-label={navOpened ? 'Close navigation' : 'Open navigation'}
                aria-expanded={navOpened}
              />
              <Link href="/" className={classes.logo} aria-label="Adit home">
                <Logo />
                <Text span inherit visibleFrom="xs">
                  adit
                </Text>
              </Link>
              <Box flex={1} miw={0} pl={{ base: 0, sm: 'lg' }}>
                <WorkspaceMenu current={current} />
              </Box>
              <ColorSchemeMenu />
              <UserMenu />
            </Group>
          </AppShell.Header>
          <AppShell.Navbar p="md" aria-label="Main">
            <Navigation workspace={blockedPage(current) ? null : current} />
          </AppShell.Navbar>
          <AppShell.Main ref={main} id="content" tabIndex={-1} className={classes.main}>
            <Box maw={1080} mx="auto">
              <OfflineBanner />
              {isNotMember ? (
                <WorkspaceNotFoundPage />
              ) : isInWorkspace ? (
                (blockedPage(current) ?? children)
              ) : (
                children
              )}
            </Box>
          </AppShell.Main>
        </AppShell>
      </WorkspaceProvider>
    </SessionProvider>
  )
}

/** What a member sees instead of the pages of a workspace that cannot be used. */
function blockedPage(workspace: Membership | null): ReactNode {
  if (workspace?.archive) return <ArchivedPage restorableUntil={workspace.archive.restorableUntil} />
  return workspace?.needsTwoFactor ? <TwoFactorRequiredPage /> : null
}
