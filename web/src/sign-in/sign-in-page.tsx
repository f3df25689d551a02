// The way in.
import { Alert, Anchor, Button, Divider } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useLocation, useSearchParams } from 'wouter'
import { useHistoryState } from 'wouter/use-browser-location'
import { call } from '../api.ts'
import { ErrorAlert } from '../components/query-states.tsx'
import { WarningIcon } from '../icons.tsx'
import { allowSignedOut, optionsQuery, queryClient, type SignInState } from '../queries.ts'
import { AuthLayout } from './auth-layout.tsx'
import { ResetByOperator } from './reset-by-operator.tsx'
import { SignInForm } from './sign-in-form.tsx'

const refusals: Record<string, string> = {
  not_invited: 'Nobody has invited this account yet. Ask an owner of your workspace for an invitation.',
  email_unverified:
    'The identity provider has not verified your e-mail address. Have it verified there, or open the link of your ' +
    'invitation and choose a password.',
  account_exists:
    'There is an account with your e-mail address that is not linked to the identity provider. Sign in with its ' +
    'password. If it has none, ask the operator of this server for a link to set one.',
  disabled: 'This account is disabled. Ask the operator of this server.',
  failed: 'Signing in at the identity provider has failed. Try again, or ask the operator.',
  cancelled: 'Signing in at the identity provider was cancelled.',
}

export function SignInPage() {
  const [, navigate] = useLocation()
  const [search] = useSearchParams()
  const options = useQuery(optionsQuery)
  const refusal = search.get('error')
  const from = useHistoryState<SignInState | null>()

  const enter = () => {
    queryClient.clear()
    navigate('/', { replace: true })
  }

  return (
    <AuthLayout title="Sign in">
      {refusal && (
        <Alert color="red" icon={<WarningIcon />} role="alert">
          {refusals[refusal] ?? refusals.failed}
        </Alert>
      )}
      {from?.wasSignedIn && !refusal && (
        <Alert color="amber" icon={<WarningIcon />} role="status">
          You were signed out. Sign in again to go on.
        </Alert>
      )}
      <SignInForm onSignedIn={enter}>
        {options.data?.sso && <SsoButton host={options.data.sso} />}
        <Forgotten resetByMail={options.data?.resetByMail} />
        <ErrorAlert error={options.error} />
      </SignInForm>
    </AuthLayout>
  )
}

function SsoButton({ host }: { host: string }) {
  const begin = useMutation({
    mutationFn: () => call('sign-in.sso'),
    onSuccess: ({ url }) => location.assign(url),
    ...allowSignedOut,
  })
  return (
    <>
      <Divider label="or" />
      <ErrorAlert error={begin.error} />
      <Button
        variant="default"
        loading={begin.isPending || begin.isSuccess}
        onClick={() => begin.mutate()}
        styles={{
          label: { whiteSpace: 'normal', overflowWrap: 'anywhere' },
          root: { minHeight: 36, height: 'auto' },
        }}
      >
        Sign in with {host}
      </Button>
    </>
  )
}

function Forgotten({ resetByMail }: { resetByMail: boolean | undefined }) {
  const [asked, setAsked] = useState(false)
  if (resetByMail)
    return (
      <Anchor component={Link} href="/forgotten" size="sm" ta="center">
        Forgotten password?
      </Anchor>
    )
  return (
    <>
      <Anchor
        component="button"
        type="button"
        size="sm"
        aria-expanded={asked}
        onClick={() => setAsked(!asked)}
      >
        Forgotten password?
      </Anchor>
      {asked && (
        <div role="status">
          <ResetByOperator />
        </div>
      )}
    </>
  )
}
