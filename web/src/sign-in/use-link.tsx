import { Anchor, Button, Stack } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { type Answer, call, type Input } from '../api.ts'
import { roleNames } from '../parts/role-name.tsx'
import { Refused } from '../parts/states.tsx'
import { forVisitors, queryClient } from '../queries.ts'
import { ChooseForm } from './choose-form.tsx'
import { Outside } from './outside.tsx'
import { CodeForm, SignInForm } from './sign-in-form.tsx'

type Facts = Answer<'links.read'>
type Step = Facts['step'] | 'code'

export function UseLink({ link, facts }: { link: string; facts: Facts }) {
  const [, navigate] = useLocation()
  const [step, setStep] = useState<Step>(facts.step)
  const enter = () => {
    queryClient.clear()
    navigate(facts.workspace ? `/w/${facts.workspace.slug}` : '/', { replace: true })
  }
  const use = useMutation({
    mutationFn: (chosen: Omit<Input<'links.use'>, 'link'>) => call('links.use', { link, ...chosen }),
    onSuccess: ({ next }) => (next === 'code' ? setStep('code') : enter()),
    ...forVisitors,
  })
  const accept = () => {
    setStep('accept')
    use.mutate({})
  }
  const steps: Record<Step, () => React.ReactNode> = {
    choose: () => (
      <>
        <ChooseForm facts={facts} isPending={use.isPending} onChosen={(chosen) => use.mutate(chosen)} />
        {facts.email === null && (
          <Anchor component="button" type="button" size="sm" onClick={() => setStep('sign_in')}>
            I have an account already
          </Anchor>
        )}
      </>
    ),
    sign_in: () => <SignInForm email={facts.email} onSignedIn={accept} />,
    accept: () => (
      <Button loading={use.isPending} onClick={accept}>
        Accept invitation
      </Button>
    ),
    code: () => <CodeForm onSignedIn={enter} onBack={() => navigate('/sign-in')} />,
  }
  return (
    <Outside
      title={facts.workspace ? `Join ${facts.workspace.name}` : 'Choose another password'}
      lead={leadOf(facts)}
    >
      <Stack>
        {steps[step]()}
        <Refused error={use.error} />
      </Stack>
    </Outside>
  )
}

function leadOf({ purpose, email, role, step }: Facts): string {
  if (purpose === 'reset') return email ? `For the account ${email}.` : ''
  const invited = `You were invited${role ? ` as ${roleNames[role].toLowerCase()}` : ''}`
  if (!email) return `${invited}.`
  return step === 'sign_in'
    ? `${invited}. There is an account for ${email} already: sign in to go on.`
    : `${invited}, with the address ${email}.`
}
