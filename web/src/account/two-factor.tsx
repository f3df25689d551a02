// Two-factor authentication: its state, and the dialogs that turn it on and off.
import { Button, Group, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useRef } from 'react'
import { dangerOutline } from '../components/dialogs/danger-outline.ts'
import { restoreFocus } from '../components/focus.ts'
import { Section } from '../components/section.tsx'
import { showToast } from '../components/toast.tsx'
import { ShieldIcon } from '../icons.tsx'
import { useSession } from '../session.tsx'
import { DisableTwoFactor } from './disable-two-factor.tsx'
import { EnableTwoFactor } from './enable-two-factor.tsx'

export function TwoFactor() {
  const { user } = useSession()
  const isOn = user.hasTwoFactor
  const [isEnabling, enabling] = useDisclosure()
  const [isDisabling, disabling] = useDisclosure()
  const button = useRef<HTMLButtonElement>(null)
  // The button that opened the dialog is replaced by the opposite one, which gets the focus.
  const done = (message: string) => {
    showToast(message)
    restoreFocus(() => button.current)
  }
  return (
    <Section
      title={`Two-factor authentication: ${isOn ? 'on' : 'off'}`}
      description="Asks for a code from your authenticator app when you sign in."
    >
      <Group gap="sm">
        <Text span c={isOn ? 'var(--mantine-color-green-text)' : 'dimmed'} lh={0}>
          <ShieldIcon size={24} />
        </Text>
        {isOn ? (
          <Button ref={button} {...dangerOutline} onClick={disabling.open}>
            Turn off
          </Button>
        ) : (
          <Button ref={button} variant="default" onClick={enabling.open}>
            Set up
          </Button>
        )}
      </Group>
      <DisableTwoFactor
        opened={isDisabling}
        onClose={disabling.close}
        onDone={() => done('Two-factor authentication is off.')}
      />
      <EnableTwoFactor
        opened={isEnabling}
        onClose={enabling.close}
        onDone={() => done('Two-factor authentication is on.')}
      />
    </Section>
  )
}
