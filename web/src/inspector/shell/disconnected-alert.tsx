// The page is not connected: mostly because the tunnel client has ended. What it recorded is gone then, and
// only this page still shows it.
import { Alert, Code } from '@mantine/core'
import { useSyncExternalStore } from 'react'
import { UnhyphenatedText } from '../../components/copy.tsx'
import { WarningIcon } from '../../icons.tsx'
import { getAccess, subscribeAccess } from '../access.ts'
import { useLive } from '../live/use-live.ts'

export function DisconnectedAlert() {
  const status = useLive((state) => state.status)
  const problem = useLive((state) => state.problem)
  const command = useLive(({ info }) => info?.command)
  const access = useSyncExternalStore(subscribeAccess, getAccess)
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
      title="The tunnel client has ended"
      role="alert"
      flex="none"
    >
      This page shows what it had loaded before.{' '}
      {access === 'ended' && 'Another program has the port now, maybe a new tunnel client. '}
      {command !== undefined && (
        <>
          Start it with <Command text={command} />, and open the link that it prints.{' '}
        </>
      )}
      If it runs again, <Command text="adit requests link" /> prints a link.
    </Alert>
  )
}

const Command = ({ text }: { text: string }) => (
  <Code className="mono">
    <UnhyphenatedText text={text} />
  </Code>
)
