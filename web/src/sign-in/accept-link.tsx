import { Anchor, Button, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { call, type Input, type Output } from '../api.ts'
import { fieldError } from '../api-error.ts'
import { ErrorAlert } from '../components/query-states.tsx'
import { roleNames } from '../components/role-badge.tsx'
import { allowSignedOut, queryClient } from '../queries.ts'
import type { Session } from '../session.tsx'
import { AuthLayout } from './auth-layout.tsx'
import { CredentialsForm } from './credentials-form.tsx'
import { CodeForm, SignInForm } from './sign-in-form.tsx'

type Facts = Output<'links.read'>
type Step = Facts['step'] | 'code'

interface AcceptLinkProps {
  link: string
  facts: Facts
  signedIn: Session['person'] | null
}

export function AcceptLink({ link, facts, signedIn }: AcceptLinkProps) {
  const [, navigate] = useLocation()
  const [step, setStep] = useState<Step>(facts.step)
  const enter = () => {
    queryClient.clear()
    navigate(facts.workspace ? `/w/${facts.workspace.slug}` : '/', { replace: true })
  }
  const use = useMutation({
    mutationFn: (chosen: Omit<Input<'links.use'>, 'link'>) => call('links.use', { link, ...chosen }),
    onSuccess: ({ next }) => (next === 'code' ? setStep('code') : enter()),
    ...allowSignedOut,
  })
  const passwordError = step === 'choose' ? fieldError(use.error, 'password') : undefined
  const accept = () => {
    setStep('accept')
    use.mutate({})
  }
  const steps: Record<Step, () => React.ReactNode> = {
    choose: () => (
      <>
        <CredentialsForm
          facts={facts}
          passwordError={passwordError}
          isPending={use.isPending}
          onChosen={(chosen) => use.mutate(chosen)}
        />
        {facts.email === null && (
          <Anchor component="button" type="button" size="sm" onClick={() => setStep('sign_in')}>
            I have an account already
          </Anchor>
        )}
      </>
    ),
    sign_in: () => <SignInForm email={facts.email} onSignedIn={accept} />,
    accept: () => (
      <>
        {signedIn && (
          <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
            You are signed in as <strong>{signedIn.name}</strong> ({signedIn.email}).
          </Text>
        )}
        <Button loading={use.isPending} onClick={accept}>
          {facts.email === null ? 'Join' : 'Accept invitation'}
        </Button>
      </>
    ),
    code: () => <CodeForm onSignedIn={enter} onBack={() => navigate('/sign-in')} />,
  }
  return (
    <AuthLayout {...(step === 'code' ? { title: 'One more step' } : headingFor(facts))}>
      <Stack>
        {steps[step]()}
        {!passwordError && <ErrorAlert error={use.error} />}
      </Stack>
    </AuthLayout>
  )
}

function headingFor({ purpose, email, role, step, workspace }: Facts): { title: string; lead: string } {
  if (purpose === 'reset' || !workspace)
    return { title: 'Choose another password', lead: email ? `For the account ${email}.` : '' }
  const title = `Join ${workspace.name}`
  // Only the link of the first start names nobody: there is nobody yet who could invite.
  if (!email && role === 'owner')
    return {
      title: `Set up the first owner of ${workspace.name}`,
      lead: 'An owner may do everything in the workspace, and invites the others.',
    }
  const invited = `You were invited${role ? ` as ${roleNames[role].toLowerCase()}` : ''}`
  if (!email) return { title, lead: `${invited}.` }
  return {
    title,
    lead:
      step === 'sign_in'
        ? `${invited}. There is an account for ${email} already: sign in to go on.`
        : `${invited}, with the address ${email}.`,
  }
}
