// The page is not connected: mostly because the tunnel client has stopped. What it recorded is gone then, and
// only this page still shows it.
import { Alert, Code } from '@mantine/core'
import { WarningIcon } from '../../icons.tsx'
import { useLive } from '../live/use-live.ts'
import { startCommand } from './start-command.ts'

export function DisconnectedAlert() {
  const { status, tunnels, problem } = useLive()
  if (status !== 'disconnected') return null
  if (problem !== undefined)
    return (
      <Alert color="amber" radius={0} icon={<WarningIcon />} title="Not connected" role="alert" flex="none">
        {problem} Retrying automatically every few seconds.
      </Alert>
    )
  return (
    <Alert
      color="amber"
      radius={0}
      icon={<WarningIcon />}
      title="The tunnel client is not running"
      role="alert"
      flex="none"
    >
      Start it again with <Code className="mono nowrap">{startCommand(tunnels)}</Code> and open the link that
      it prints. The requests on this page are from before; their details can no longer be read.
    </Alert>
  )
}
