// The second factor: whether there is one, and the dialogs that set it up and remove it.

import { Button, Group, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { ShieldIcon } from '../icons.tsx'
import { quietDanger } from '../parts/quiet-danger.ts'
import { useSession } from '../session.tsx'
import { RemoveSecondFactor } from './remove-second-factor.tsx'
import { Section } from './section.tsx'
import { SetUpSecondFactor } from './set-up-second-factor.tsx'

export function SecondFactor() {
  const { person } = useSession()
  const [opened, dialog] = useDisclosure()
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
        <>
          <Button {...quietDanger} onClick={dialog.open}>
            Remove second factor
          </Button>
          <RemoveSecondFactor opened={opened} onClose={dialog.close} />
        </>
      ) : (
        <>
          <Button variant="default" onClick={dialog.open}>
            Set up second factor
          </Button>
          <SetUpSecondFactor opened={opened} onClose={dialog.close} />
        </>
      )}
    </Section>
  )
}
