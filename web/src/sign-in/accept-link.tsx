// Accepts an invitation, or sets a new password with a reset link.
import { Anchor, Button, Stack, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { useLocation } from 'wouter'
import { call, type Input, type Output } from '../api.ts'
import { fieldError } from '../api-error.ts'
import { ErrorAlert } from '../components/lists/query-states.tsx'
import { showToast } from '../components/toast.tsx'
import { allowSignedOut, queryClient, signInOptionsQuery } from '../queries.ts'
import type { Session } from '../session.tsx'
import { AuthLayout } from './auth-layout.tsx'
import { CredentialsForm } from './credentials-form.tsx'
import { CodeForm, SignInForm } from './sign-in-form.tsx'
import { SsoButton } from './sso-button.tsx'

type LinkDetails = Output<'links.read'>
type Step = LinkDetails['step'] | 'code'

interface AcceptLinkProps {
  token: string
  link: LinkDetails
  user: Session['user'] | null
}

export function AcceptLink({ token, link, user }: AcceptLinkProps) {
  const [, navigate] = useLocation()
  const [step, setStep] = useState<Step>(link.step)
  const finish = () => {
    queryClient.clear()
    navigate(link.workspace ? `/w/${link.workspace.slug}?joined` : '/', { replace: true })
    showToast(doneMessage(link, step))
  }
  const use = useMutation({
    mutationFn: (credentials: Omit<Input<'links.redeem'>, 'link'>) =>
      call('links.redeem', { link: token, ...credentials }),
    onSuccess: ({ next }) => (next === 'code' ? setStep('code') : finish()),
    ...allowSignedOut,
  })
  const passwordError = step === 'choose' ? fieldError(use.error, 'password') : undefined
  const accept = () => {
    setStep('accept')
    use.mutate({})
  }
  const steps: Record<Step, () => ReactNode> = {
    choose: () => (
      <>
        <CredentialsForm
          link={link}
          passwordError={passwordError}
          isPending={use.isPending}
          onSubmit={(credentials) => use.mutate(credentials)}
        />
        {link.email === null && (
          <Anchor component="button" type="button" size="sm" onClick={() => setStep('sign_in')}>
            I already have an account
          </Anchor>
        )}
      </>
    ),
    sign_in: () => <SignInForm email={link.email} onSignedIn={accept} />,
    accept: () => (
      <>
        {user && (
          <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
            You are signed in as <strong>{user.name}</strong> ({user.email}).
          </Text>
        )}
        <Button loading={use.isPending} onClick={accept}>
          {link.email === null ? 'Join workspace' : 'Accept invitation'}
        </Button>
      </>
    ),
    code: () => <CodeForm onSignedIn={finish} onBack={() => navigate('/sign-in')} />,
  }
  return (
    <AuthLayout {...(step === 'code' ? { title: 'Two-factor authentication' } : headingFor(link))}>
      <Stack>
        {steps[step]()}
        {link.purpose === 'join' && (step === 'choose' || step === 'sign_in') && (
          <ContinueWithSso token={token} />
        )}
        {!passwordError && <ErrorAlert error={use.error} />}
      </Stack>
    </AuthLayout>
  )
}

function ContinueWithSso({ token }: { token: string }) {
  const host = useQuery(signInOptionsQuery).data?.sso
  return host ? <SsoButton link={token}>Continue with {host}</SsoButton> : null
}

/** Only the setup link of a new server is for an owner without naming an address. */
const isSetup = ({ purpose, email, role }: LinkDetails) => purpose !== 'reset' && !email && role === 'owner'

function doneMessage(link: LinkDetails, step: Step): string {
  if (link.purpose === 'reset') return 'Password changed.'
  return isSetup(link) && step === 'choose' ? 'Account created.' : `You joined ${link.workspace?.name}.`
}

const roleWithArticle = { member: 'a member', admin: 'an admin', owner: 'an owner' } as const

function headingFor(link: LinkDetails): { title: string; description: string } {
  const { purpose, email, role, step, workspace } = link
  if (purpose === 'reset' || !workspace)
    return { title: 'Set a new password', description: email ? `For the account ${email}.` : '' }
  if (isSetup(link))
    return {
      title: 'Create the owner account',
      description: `The owner has full access to workspace ${workspace.name} and can invite members.`,
    }
  const title = `Join ${workspace.name}`
  const invited = `You are invited${role ? ` as ${roleWithArticle[role]}` : ''}.`
  if (!email || step === 'accept') return { title, description: invited }
  if (step === 'choose') return { title, description: `${invited} You will sign in with ${email}.` }
  return { title, description: `${invited} Sign in to your account ${email} to continue.` }
}
