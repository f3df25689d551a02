// Checks the signature of a webhook. The secret is used for the check only, and not kept.
import { Alert, Modal, NativeSelect, PasswordInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import {
  API,
  type SignatureRequest,
  type SignatureResult,
  type SignatureScheme,
} from '../../../../src/inspector/api.ts'
import { DialogActions, Form } from '../../components/forms/form.tsx'
import { CheckIcon, WarningIcon } from '../../icons.tsx'
import { call } from '../api.ts'
import { formatMoment } from '../list/format.ts'

interface SignatureDialogProps {
  id: string
  opened: boolean
  onClose: () => void
}

export const SignatureDialog = ({ id, opened, onClose }: SignatureDialogProps) => (
  <Modal opened={opened} onClose={onClose} title="Check webhook signature">
    {opened && <SignatureForm id={id} onClose={onClose} />}
  </Modal>
)

const schemeNames: Record<SignatureScheme, string> = {
  stripe: 'Stripe',
  github: 'GitHub',
  slack: 'Slack',
  'standard-webhooks': 'Standard Webhooks',
}

function SignatureForm({ id, onClose }: Omit<SignatureDialogProps, 'opened'>) {
  const [scheme, setScheme] = useState<SignatureScheme>('stripe')
  const [secret, setSecret] = useState('')
  const check = useMutation({
    mutationFn: () => {
      const body: SignatureRequest = { scheme, secret }
      return call<SignatureResult>(API.signature(id), { method: 'POST', body })
    },
  })
  return (
    <Form onSubmit={() => check.mutate()}>
      <NativeSelect
        label="Sender"
        data={Object.entries(schemeNames).map(([value, label]) => ({ value, label }))}
        value={scheme}
        onChange={(event) => setScheme(event.currentTarget.value as SignatureScheme)}
      />
      <PasswordInput
        label="Signing secret"
        description="Used for this check only, and not stored."
        required
        data-autofocus
        autoComplete="off"
        value={secret}
        onChange={(event) => setSecret(event.currentTarget.value)}
      />
      {check.data && <Result result={check.data} />}
      <DialogActions mutation={check} onCancel={onClose}>
        Check signature
      </DialogActions>
    </Form>
  )
}

const Result = ({ result: { holds, message, signedAt } }: { result: SignatureResult }) => (
  <Alert
    color={holds ? 'green' : 'red'}
    icon={holds ? <CheckIcon /> : <WarningIcon />}
    title={holds ? 'The signature is valid' : 'The signature is not valid'}
    role="status"
  >
    {message}
    {signedAt && ` Signed ${formatMoment(signedAt)}.`}
  </Alert>
)
