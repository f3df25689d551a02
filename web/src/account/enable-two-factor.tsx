// Dialog that enables two-factor authentication: password, secret and recovery codes, first code.

import { Anchor, Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { CODE_CHARS } from '../../../src/contract/limits.ts'
import { call, type Output } from '../api.ts'
import { CopyBlock } from '../components/copy.tsx'
import { ErrorAlert } from '../components/lists/query-states.tsx'
import { useIsPhone } from '../components/use-is-phone.ts'
import { queryClient } from '../queries.ts'
import { PasswordStep } from './password-step.tsx'
import { QrCode } from './qr-code.tsx'
import { RecoveryCodes } from './recovery-codes.tsx'

type Setup = Output<'two-factor.begin'>

interface EnableTwoFactorProps {
  opened: boolean
  onClose: () => void
  onDone: () => void
}

export function EnableTwoFactor({ opened, onClose, onDone }: EnableTwoFactorProps) {
  // Secrets stay in the state of this component, in no cache.
  const [setup, setSetup] = useState<Setup | null>(null)
  const close = () => {
    setSetup(null)
    onClose()
  }
  const finish = () => {
    close()
    onDone()
  }
  return (
    <Modal
      opened={opened}
      onClose={close}
      title="Set up two-factor authentication"
      size="lg"
      closeOnClickOutside={setup === null}
      transitionProps={{ duration: 0 }}
    >
      {setup ? (
        <ConfirmStep setup={setup} onDone={finish} onCancel={close} />
      ) : (
        <PasswordStep
          actionLabel="Continue"
          onSubmit={async (password) => setSetup(await call('two-factor.begin', { password }))}
          onCancel={close}
        />
      )}
    </Modal>
  )
}

interface ConfirmStepProps {
  setup: Setup
  onDone: () => void
  onCancel: () => void
}

function ConfirmStep({ setup, onDone, onCancel }: ConfirmStepProps) {
  const [code, setCode] = useState('')
  const confirm = useMutation({
    mutationFn: () => call('two-factor.confirm', { code: code.trim() }),
    onSuccess: async () => {
      await queryClient.invalidateQueries({ queryKey: ['session'] })
      onDone()
    },
  })
  // The error makes the dialog taller than a small screen.
  const actionsRef = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (confirm.error) actionsRef.current?.scrollIntoView({ block: 'end' })
  }, [confirm.error])
  const submit = (event: FormEvent) => {
    event.preventDefault()
    confirm.mutate()
  }
  return (
    <Stack gap="md">
      <AuthenticatorSetup setup={setup} />
      <RecoveryCodes codes={setup.recoveryCodes} />
      <form onSubmit={submit}>
        <Stack gap="xs">
          <Text fw={600}>3. Enter the code from the app</Text>
          <TextInput
            label="Code"
            inputMode="numeric"
            autoComplete="one-time-code"
            required
            minLength={CODE_CHARS.min}
            maxLength={CODE_CHARS.max}
            className="tabular"
            value={code}
            onChange={(event) => setCode(event.currentTarget.value)}
          />
          <ErrorAlert error={confirm.error} />
          <Group ref={actionsRef} justify="flex-end">
            <Button variant="default" onClick={onCancel}>
              Cancel
            </Button>
            <Button type="submit" loading={confirm.isPending}>
              Turn on
            </Button>
          </Group>
        </Stack>
      </form>
    </Stack>
  )
}

function AuthenticatorSetup({ setup }: { setup: Setup }) {
  const isPhone = useIsPhone()
  return (
    <Stack gap="xs">
      <Text fw={600}>1. Add Adit to your authenticator app</Text>
      <Group align="flex-start" gap="lg">
        <QrCode text={setup.uri} name="QR code for your authenticator app" />
        <Stack gap="xs" flex="1 1 220px" miw={0}>
          {isPhone && (
            <Text size="sm">
              <Anchor href={setup.uri} underline="always">
                Open your authenticator app
              </Anchor>{' '}
              on this phone.
            </Text>
          )}
          <Text size="sm">
            {isPhone ? 'Or scan' : 'Scan'} the QR code with the app, or enter this key (TOTP):
          </Text>
          <CopyBlock text={setup.secret.replace(/(.{4})(?=.)/g, '$1 ')} name="Copy key" />
        </Stack>
      </Group>
    </Stack>
  )
}
