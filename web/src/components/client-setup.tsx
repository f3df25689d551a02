// How to install the client on a machine and sign in to this server.
import { Button, Code, Modal, Stack, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { LOCAL_PORT } from '../../../src/lib/client-commands.ts'
import { EDGE_PORT } from '../../../src/lib/net/edge-port.ts'
import { ScreenIcon } from '../icons.tsx'
import { client, npmCommand, usesDefaultPort } from '../overview/commands.ts'
import { workspaceQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
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

export function TunnelCommand() {
  const { slug } = useWorkspace()
  const { data: workspace } = useQuery(workspaceQuery(slug))
  return (
    <>
      <Command command={client.tunnel} name="Copy tunnel command">
        Open a tunnel to your app on port {LOCAL_PORT}. It prints the public URL, whose first part you choose
        with <Code className="mono nowrap">--name</Code>:
      </Command>
      {workspace && usesDefaultPort(workspace) && (
        <Text size="sm" c="dimmed">
          If the edge does not listen on port {EDGE_PORT} (<span className="mono">ADIT_EDGE_PORT</span>), add{' '}
          <span className="mono nowrap">--edge http://127.0.0.1:&lt;port&gt;</span>.
        </Text>
      )}
    </>
  )
}

/** All steps, for a machine that has no client yet. */
export function ClientSetup() {
  return (
    <Stack>
      <InstallCommand />
      <Command command={client.login} name="Copy login command">
        Sign in with your browser or an API key:
      </Command>
      <TunnelCommand />
    </Stack>
  )
}

export const ConnectMachine = () => (
  <Stack>
    <ClientSetup />
    <Text size="sm" c="dimmed">
      On Windows, or to install it with npm (Node 20 or later):{' '}
      <Code className="mono wrapped">{npmCommand}</Code>
    </Text>
  </Stack>
)

/** A button that shows the steps again at any time. */
export function ConnectMachineButton() {
  const [opened, { open, close }] = useDisclosure()
  return (
    <>
      <Button variant="default" leftSection={<ScreenIcon />} onClick={open}>
        Connect a machine
      </Button>
      <Modal opened={opened} onClose={close} title="Connect a machine" size="lg">
        <ConnectMachine />
      </Modal>
    </>
  )
}
