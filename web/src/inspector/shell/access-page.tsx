// Shown without access to the requests: why, and how to get a new link.
import { Center, Loader, Stack, Text, Title, VisuallyHidden } from '@mantine/core'
import { LOCAL_PORT } from '../../../../src/lib/client-commands.ts'
import { CopyBlock } from '../../components/copy.tsx'
import { Logo } from '../../icons.tsx'
import type { Access } from '../access.ts'

const LINK_COMMAND = 'adit requests link'

const reasons: Record<
  Exclude<Access, 'checking' | 'granted' | 'ended'>,
  { title: string; text: string; command: string }
> = {
  'no-link': {
    title: 'Open the inspector with its link',
    text: 'Only the link that the tunnel client prints gives access to its requests, once. Print a new one:',
    command: LINK_COMMAND,
  },
  'link-used': {
    title: 'This link was used before',
    text: 'A link works once, for one browser tab. Print a new one on the machine where the tunnel runs:',
    command: LINK_COMMAND,
  },
  expired: {
    title: 'This page has no access anymore',
    text: 'The tunnel client was started again, or other tabs were opened since. Print a new link:',
    command: LINK_COMMAND,
  },
  unreachable: {
    title: 'The tunnel client is not running',
    text: 'Start it again, and open the link that it prints:',
    command: `adit tunnel ${LOCAL_PORT} --inspect`,
  },
}

export function AccessPage({ access }: { access: Exclude<Access, 'granted' | 'ended'> }) {
  return (
    <Center component="main" mih="100dvh" p="md">
      <Stack align="center" maw={420} ta="center">
        <Logo size={48} />
        {access === 'checking' ? (
          <>
            <VisuallyHidden component="h1">Opening the inspector</VisuallyHidden>
            <Loader color="amber" aria-label="Loading" role="status" />
          </>
        ) : (
          <Reason {...reasons[access]} />
        )}
      </Stack>
    </Center>
  )
}

const Reason = ({ title, text, command }: (typeof reasons)['no-link']) => (
  <>
    <Title order={1} size="h2">
      {title}
    </Title>
    <Text c="dimmed">{text}</Text>
    <CopyBlock text={command} name="Copy command" />
  </>
)
