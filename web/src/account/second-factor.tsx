// The second factor: whether there is one, and the dialogs that set it up and remove it.
import { Button, Group, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useRef } from 'react'
import { ShieldIcon } from '../icons.tsx'
import { announce } from '../parts/announce.tsx'
import { keepFocus } from '../parts/focus.ts'
import { quietDanger } from '../parts/quiet-danger.ts'
import { useSession } from '../session.tsx'
import { RemoveSecondFactor } from './remove-second-factor.tsx'
import { Section } from './section.tsx'
import { SetUpSecondFactor } from './set-up-second-factor.tsx'

export function SecondFactor() {
  const { person } = useSession()
  const [isSettingUp, settingUp] = useDisclosure()
  const [isRemoving, removing] = useDisclosure()
  const button = useRef<HTMLButtonElement>(null)
  // Each button goes with what its dialog has done, so the other one has the focus next.
  const done = (said: string) => {
    announce(said)
    keepFocus(() => button.current)
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
        <Button ref={button} {...quietDanger} onClick={removing.open}>
          Remove second factor
        </Button>
      ) : (
        <Button ref={button} variant="default" onClick={settingUp.open}>
          Set up second factor
        </Button>
      )}
      <RemoveSecondFactor
        opened={isRemoving}
        onClose={removing.close}
        onDone={() => done('The second factor is removed.')}
      />
      <SetUpSecondFactor
        opened={isSettingUp}
        onClose={settingUp.close}
        onDone={() => done('The second factor is on.')}
      />
    </Section>
  )
}
