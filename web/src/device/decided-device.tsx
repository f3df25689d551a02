// What became of the sign-in of a terminal.
import { Anchor, Text } from '@mantine/core'
import { Link } from 'wouter'
import type { Device } from '../queries.ts'
import { AuthLayout } from '../sign-in/auth-layout.tsx'

type Decision = Exclude<Device['state'], 'pending'>

const texts: Record<Decision, { title: string; text: string }> = {
  approved: {
    title: 'Approved',
    text: 'Return to your terminal. It gets its API key within seconds; stay signed in here until then.',
  },
  consumed: { title: 'Signed in', text: 'The terminal has its API key. You can close this page.' },
  denied: { title: 'Denied', text: 'The terminal gets no API key. You can close this page.' },
  failed: { title: 'Not signed in', text: 'The terminal did not get an API key. Run adit login again.' },
}

/** The user may not create keys. */
const requested = {
  title: 'Waiting for approval',
  text:
    'The admins and owners of the workspace got your request. Your terminal gets its API key when one of them ' +
    'approves it. If it stops waiting, run adit login again then.',
}

interface DecidedDeviceProps extends Pick<Device, 'deviceName' | 'failureReason' | 'awaitsKeyApproval'> {
  state: Decision
}

export function DecidedDevice({ state, deviceName, failureReason, awaitsKeyApproval }: DecidedDeviceProps) {
  const { title, text } = awaitsKeyApproval ? requested : texts[state]
  return (
    <AuthLayout title={title} description={deviceName}>
      <Text size="sm" role="status">
        {failureReason ? `${failureReason} ${text}` : text}
      </Text>
      <Anchor component={Link} href="/" size="sm" ta="center">
        Go to the dashboard
      </Anchor>
    </AuthLayout>
  )
}
