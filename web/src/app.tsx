// Routes of the dashboard.
import { useQuery } from '@tanstack/react-query'
import { type ComponentType, lazy, Suspense, useEffect } from 'react'
import { matchRoute, Redirect, Route, Switch, useLocation, useRouter } from 'wouter'
import { AuthorizePage } from './agent/authorize-page.tsx'
import { SkeletonRows } from './components/lists/query-states.tsx'
import { NotFoundPage, NoWorkspacePage } from './components/not-found.tsx'
import { DevicePage } from './device/device-page.tsx'
import { KeysPage } from './keys/keys-page.tsx'
import { MembersPage } from './members/members-page.tsx'
import { OverviewPage } from './overview/overview-page.tsx'
import { clearReturnPath, lastWorkspace, returnPath } from './paths.ts'
import { optionalSessionQuery, sessionQuery } from './queries.ts'
import { firstUsable } from './session.tsx'
import { LoadingScreen } from './shell/connection-status.tsx'
import { Shell } from './shell/layout.tsx'
import { ForgotPasswordPage } from './sign-in/forgot-password-page.tsx'
import { LinkPage } from './sign-in/link-page.tsx'
import { PublicNotFoundPage } from './sign-in/public-not-found-page.tsx'
import { SignInPage } from './sign-in/sign-in-page.tsx'
import { TunnelsPage } from './tunnels/tunnels-page.tsx'
import { UsagePage } from './usage/usage-page.tsx'

const lazyPage = (load: () => Promise<ComponentType>) => lazy(async () => ({ default: await load() }))

// Users open these pages rarely, so each has its own chunk.
const AccountPage = lazyPage(async () => (await import('./account/account-page.tsx')).AccountPage)
const AuditPage = lazyPage(async () => (await import('./audit/audit-page.tsx')).AuditPage)
const SettingsPage = lazyPage(async () => (await import('./settings/settings-page.tsx')).SettingsPage)
const WebhooksPage = lazyPage(async () => (await import('./webhooks/webhooks-page.tsx')).WebhooksPage)
const EndpointPage = lazyPage(async () => (await import('./webhooks/endpoint-page.tsx')).EndpointPage)

const privatePages = [
  { path: '/', page: Home },
  { path: '/w/:workspace', page: OverviewPage },
  { path: '/w/:workspace/tunnels', page: TunnelsPage },
  { path: '/w/:workspace/keys', page: KeysPage },
  { path: '/w/:workspace/usage', page: UsagePage },
  { path: '/w/:workspace/members', page: MembersPage },
  { path: '/w/:workspace/webhooks', page: WebhooksPage },
  { path: '/w/:workspace/webhooks/:id', page: EndpointPage },
  { path: '/w/:workspace/audit', page: AuditPage },
  { path: '/w/:workspace/settings', page: SettingsPage },
  { path: '/account', page: AccountPage },
]

export function App() {
  return (
    <Switch>
      <Route path="/sign-in" component={SignInPage} />
      <Route path="/forgot-password" component={ForgotPasswordPage} />
      <Route path="/link" component={LinkPage} />
      <Route path="/device" component={DevicePage} />
      <Route path="/authorize" component={AuthorizePage} />
      <Route component={PrivatePages} />
    </Switch>
  )
}

function PrivatePages() {
  const { parser } = useRouter()
  const [location] = useLocation()
  if (!privatePages.some(({ path }) => matchRoute(parser, path, location)[0])) return <UnknownPath />
  return (
    <Shell>
      <Suspense fallback={<Loading />}>
        <Switch>
          {privatePages.map(({ path, page }) => (
            <Route key={path} path={path} component={page} />
          ))}
        </Switch>
      </Suspense>
    </Shell>
  )
}

const Loading = () => (
  <output aria-label="Loading">
    <SkeletonRows />
  </output>
)

function Home() {
  // Read from the cache: the shell re-renders with its session a moment after the user has left a workspace.
  const { data: session } = useQuery(sessionQuery)
  const workspaces = session?.workspaces ?? []
  const returnTo = returnPath()
  useEffect(clearReturnPath, [])
  if (returnTo && returnTo !== '/') return <Redirect to={returnTo} replace />
  const last = workspaces.find(({ slug, archive }) => slug === lastWorkspace() && archive === null)
  const target = last ?? firstUsable(workspaces)
  return target ? <Redirect to={`/w/${target.slug}`} replace /> : <NoWorkspacePage />
}

/** Does not require signing in first, only to report that the page does not exist. */
function UnknownPath() {
  const session = useQuery(optionalSessionQuery)
  if (session.data === null) return <PublicNotFoundPage />
  if (!session.data) return <LoadingScreen error={session.error} retry={session.refetch} />
  return (
    <Shell>
      <NotFoundPage />
    </Shell>
  )
}
