// Checks the signature of a webhook. The secret is used for the check only, and not kept.
import { Alert, Modal, NativeSelect, PasswordInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import {
  API,
  type Exchange,
  SIGNATURE_SCHEMES,
  type SignatureRequest,
  type SignatureResult,
  type SignatureScheme,
} from '../../../../src/inspector/api.ts'
import { DialogActions, Form } from '../../components/forms/form.tsx'
import { CheckIcon, WarningIcon } from '../../icons.tsx'
import { call } from '../api.ts'
import { formatMoment } from '../list/format.ts'

interface SignatureDialogProps {
  exchange: Exchange
  opened: boolean
  onClose: () => void
}

export const SignatureDialog = ({ exchange, opened, onClose }: SignatureDialogProps) => (
  <Modal opened={opened} onClose={onClose} title="Check webhook signature">
    {opened && <SignatureForm exchange={exchange} onClose={onClose} />}
  </Modal>
)

const schemeNames: Record<SignatureScheme, string> = {
  stripe: 'Stripe',
  github: 'GitHub',
  slack: 'Slack',
  'standard-webhooks': 'Standard Webhooks',
}

const signatureHeaders: Record<SignatureScheme, readonly string[]> = {
  stripe: ['stripe-signature'],
  github: ['x-hub-signature-256'],
  slack: ['x-slack-signature'],
  'standard-webhooks': ['webhook-signature', 'svix-signature'],
}

/** By the header that has the signature, if there is one. */
function guessScheme({ request }: Exchange): SignatureScheme {
  const names = new Set(request.headers.map(({ name }) => name.toLowerCase()))
  return (
    SIGNATURE_SCHEMES.find((scheme) => signatureHeaders[scheme].some((name) => names.has(name))) ?? 'stripe'
  )
}

function SignatureForm({ exchange, onClose }: Omit<SignatureDialogProps, 'opened'>) {
  const [scheme, setScheme] = useState(() => guessScheme(exchange))
  const [secret, setSecret] = useState('')
  const check = useMutation({
    mutationFn: () => {
      const body: SignatureRequest = { scheme, secret }
      return call<SignatureResult>(API.signature(exchange.id), { method: 'POST', body })
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

const Result = ({ result: { valid, message, signedAt } }: { result: SignatureResult }) => (
  <Alert
    color={valid ? 'green' : 'red'}
    icon={valid ? <CheckIcon /> : <WarningIcon />}
    title={valid ? 'The signature is valid' : 'The signature is not valid'}
    role="status"
  >
    {!valid && message}
    {signedAt && ` Signed ${formatMoment(signedAt)}.`}
  </Alert>
)
