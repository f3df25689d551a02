// The sign-in page. Users who are already signed in are redirected to the dashboard.
import { Alert, Anchor, Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, Redirect, useLocation, useSearchParams } from 'wouter'
import { useHistoryState } from 'wouter/use-browser-location'
import { ErrorAlert } from '../components/lists/query-states.tsx'
import { WarningIcon } from '../icons.tsx'
import { optionalSessionQuery, queryClient, type SignInState, signInOptionsQuery } from '../queries.ts'
import { AuthLayout } from './auth-layout.tsx'
import { ResetByOperator } from './reset-by-operator.tsx'
import { SignInForm } from './sign-in-form.tsx'
import { SsoButton } from './sso-button.tsx'

/** Messages for the error codes with which single sign-on returns. */
const ssoErrors: Record<string, string> = {
  not_invited: 'This account has not been invited. Ask an owner of your workspace for an invitation.',
  email_unverified:
    'The identity provider has not verified your email address. Verify it there, or open your invitation ' +
    'link and set a password.',
  account_exists:
    'The account with your email address is not linked to the identity provider. Sign in with its ' +
    'password. If it has none, ask your server admin for a link to set one.',
  wrong_email:
    'Your invitation is for another email address than the one you have at the identity provider. Open the ' +
    'invitation link again, and sign in there with the invited address or set a password.',
  invalid_invitation: 'This invitation has expired or was already used. Ask for a new one.',
  disabled: 'This account is disabled. Contact your server admin.',
  failed: 'Sign-in with the identity provider failed. Try again, or contact your server admin.',
  canceled: 'Sign-in with the identity provider was canceled.',
}

export function SignInPage() {
  const [search] = useSearchParams()
  const ssoError = search.get('error')
  const session = useQuery(optionalSessionQuery)
  if (session.data && !ssoError) return <Redirect to="/" replace />
  return (
    <AuthLayout title="Sign in">
      {session.isPending ? <Skeleton h={180} /> : <SignInMethods ssoError={ssoError} />}
    </AuthLayout>
  )
}

function SignInMethods({ ssoError }: { ssoError: string | null }) {
  const [, navigate] = useLocation()
  const options = useQuery(signInOptionsQuery)
  const historyState = useHistoryState<SignInState | null>()
  const enter = () => {
    queryClient.clear()
    navigate('/', { replace: true })
  }
  return (
    <>
      {ssoError && (
        <Alert color="red" icon={<WarningIcon />} role="alert">
          {ssoErrors[ssoError] ?? ssoErrors.failed}
        </Alert>
      )}
      {historyState?.wasSignedIn && !ssoError && (
        <Alert color="amber" icon={<WarningIcon />} role="status">
          Your session has ended. Sign in again to continue.
        </Alert>
      )}
      <SignInForm onSignedIn={enter}>
        {options.data?.sso && <SsoButton>Sign in with {options.data.sso}</SsoButton>}
        <ForgotPassword resetByMail={options.data?.resetByMail} />
        <ErrorAlert error={options.error} />
      </SignInForm>
    </>
  )
}

function ForgotPassword({ resetByMail }: { resetByMail: boolean | undefined }) {
  const [isOpen, setOpen] = useState(false)
  if (resetByMail)
    return (
      <Anchor component={Link} href="/forgot-password" size="sm" ta="center">
        Forgot password?
      </Anchor>
    )
  return (
    <>
      <Anchor
        component="button"
        type="button"
        size="sm"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        Forgot password?
      </Anchor>
      {isOpen && (
        <div role="status">
          <ResetByOperator />
        </div>
      )}
    </>
  )
}
