// Which page is at which address.
import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { Redirect, Route, Switch } from 'wouter'
import { AccountPage } from './account/account-page.tsx'
import { AuditPage } from './audit/audit-page.tsx'
import { NotFoundPage, NoWorkspacePage } from './components/not-found.tsx'
import { KeysPage } from './keys/keys-page.tsx'
import { MembersPage } from './members/members-page.tsx'
import { OverviewPage } from './overview/overview-page.tsx'
import { clearReturnPath, lastWorkspace, returnPath } from './paths.ts'
import { sessionQuery } from './queries.ts'
import { Shell } from './shell/shell.tsx'
import { ForgotPasswordPage } from './sign-in/forgot-password-page.tsx'
import { LinkPage } from './sign-in/link-page.tsx'
import { SignInPage } from './sign-in/sign-in-page.tsx'
import { UsagePage } from './usage/usage-page.tsx'

export function App() {
  return (
    <Switch>
      <Route path="/sign-in" component={SignInPage} />
      <Route path="/forgotten" component={ForgotPasswordPage} />
      <Route path="/link" component={LinkPage} />
      <Route>
        <Shell>
          <Switch>
            <Route path="/" component={Home} />
            <Route path="/w/:workspace" component={OverviewPage} />
            <Route path="/w/:workspace/keys" component={KeysPage} />
            <Route path="/w/:workspace/usage" component={UsagePage} />
            <Route path="/w/:workspace/people" component={MembersPage} />
            <Route path="/w/:workspace/audit" component={AuditPage} />
            <Route path="/account" component={AccountPage} />
            <Route component={NotFoundPage} />
          </Switch>
        </Shell>
      </Route>
    </Switch>
  )
}

function Home() {
  // From the cache and not from the shell, which hears a moment later that one has left a workspace.
  const { data: session } = useQuery(sessionQuery)
  const workspaces = session?.workspaces ?? []
  const returnTo = returnPath()
  useEffect(clearReturnPath, [])
  if (returnTo && returnTo !== '/') return <Redirect to={returnTo} replace />
  const chosen = workspaces.find(({ slug }) => slug === lastWorkspace()) ?? workspaces[0]
  return chosen ? <Redirect to={`/w/${chosen.slug}`} replace /> : <NoWorkspacePage />
}
