// The second factor: whether there is one, and the dialogs that set it up and remove it.
import { Button, Group, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useRef } from 'react'
import { dangerOutline } from '../components/danger-outline.ts'
import { restoreFocus } from '../components/focus.ts'
import { announce } from '../components/toast.tsx'
import { ShieldIcon } from '../icons.tsx'
import { useSession } from '../session.tsx'
import { DisableTwoFactor } from './disable-two-factor.tsx'
import { EnableTwoFactor } from './enable-two-factor.tsx'
import { Section } from './section.tsx'

export function TwoFactor() {
  const { person } = useSession()
  const [isSettingUp, settingUp] = useDisclosure()
  const [isRemoving, removing] = useDisclosure()
  const button = useRef<HTMLButtonElement>(null)
  // Each button goes with what its dialog has done, so the other one has the focus next.
  const done = (said: string) => {
    announce(said)
    restoreFocus(() => button.current)
  }
  return (
    <Section
      title="Second factor"
      lead="With one, signing in takes your password and a code from an authenticator app on your phone."
    >
      <Group gap="sm" mb="md">
        <Text span c={person.hasSecondFactor ? 'var(--mantine-color-green-text)' : 'dimmed'} lh={0}>
          <ShieldIcon size={22} />
        </Text>
        <Text size="sm" fw={600}>
          {person.hasSecondFactor ? 'Is on' : 'Is off'}
        </Text>
      </Group>
      {person.hasSecondFactor ? (
        <Button ref={button} {...dangerOutline} onClick={removing.open}>
          Remove second factor
        </Button>
      ) : (
        <Button ref={button} variant="default" onClick={settingUp.open}>
          Set up second factor
        </Button>
      )}
      <DisableTwoFactor
        opened={isRemoving}
        onClose={removing.close}
        onDone={() => done('The second factor is removed.')}
      />
      <EnableTwoFactor
        opened={isSettingUp}
        onClose={settingUp.close}
        onDone={() => done('The second factor is on.')}
      />
    </Section>
  )
}
