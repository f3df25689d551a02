// How to install the client on a machine and sign in to this server.
import { Button, Code, Modal, Stack, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import type { ReactNode } from 'react'
import { LOCAL_PORT } from '../../../src/lib/client-commands.ts'
import { ScreenIcon } from '../icons.tsx'
import { client, npmCommand } from '../overview/commands.ts'
import { CopyBlock } from './copy.tsx'

interface CommandProps {
  command: string
  /** Accessible name of the button that copies it. */
  name: string
  children: ReactNode
}

export function Command({ command, name, children }: CommandProps) {
  return (
    <div>
      <Text size="sm" mb={4}>
        {children}
      </Text>
      <CopyBlock text={command} name={name} />
    </div>
  )
}

export const InstallCommand = () => (
  <Command command={client.install} name="Copy install command">
    Install the client on the machine running your app (Linux or macOS):
  </Command>
)

/** All steps, for a machine that has no client yet. */
export function ClientSetup() {
  return (
    <Stack>
      <InstallCommand />
      <Command command={client.login} name="Copy login command">
        Sign in with your browser or an API key:
      </Command>
      <Command command={client.tunnel} name="Copy tunnel command">
        Open a tunnel to your app on port {LOCAL_PORT}:
      </Command>
    </Stack>
  )
}

/** A button that shows the steps again at any time. */
export function ConnectMachineButton() {
  const [opened, { open, close }] = useDisclosure()
  return (
    <>
      <Button variant="default" leftSection={<ScreenIcon />} onClick={open}>
        Connect a machine
      </Button>
      <Modal opened={opened} onClose={close} title="Connect a machine" size="lg">
        <Stack>
          <ClientSetup />
          <Text size="sm" c="dimmed">
            On Windows, or to install it with npm (Node 20 or later):{' '}
            <Code className="mono wrapped">{npmCommand}</Code>
          </Text>
        </Stack>
      </Modal>
    </>
  )
}
