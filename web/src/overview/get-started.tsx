// Instead of empty charts: how to get the first traffic.
import { Anchor, Button, Paper, Stack, Text, Timeline, Title } from '@mantine/core'
import { Link } from 'wouter'
import { CopyBlock } from '../components/copy.tsx'
import { apiBaseUrl, docsUrl } from '../paths.ts'
import { useWorkspace } from '../session.tsx'

export const curlCommand = (token: string): string =>
  `curl -H "Authorization: Bearer ${token}" ${apiBaseUrl}/workspace`

export function GetStarted() {
  const { slug, canManage } = useWorkspace()
  return (
    <Paper p="lg">
      <Stack>
        <div>
          <Title order={2} size="h4">
            Get started
          </Title>
          <Text size="sm" c="dimmed">
            Nothing has gone through this workspace yet. Three steps to the first tunnel:
          </Text>
        </div>
        <Timeline active={-1} bulletSize={26} lineWidth={2}>
          <Timeline.Item bullet="1" title="Get an API key">
            <Stack align="flex-start" gap="xs">
              <Text size="sm">
                {canManage
                  ? 'A key stands for this workspace. It is shown once, so have a safe place for it ready.'
                  : 'A key stands for this workspace. Ask an admin or owner to create one for you.'}
              </Text>
              {canManage && (
                <Button component={Link} href={`/w/${slug}/keys?create`} size="xs">
                  Create key
                </Button>
              )}
            </Stack>
          </Timeline.Item>
          <Timeline.Item bullet="2" title="Try it">
            <Text size="sm" mb="xs">
              The answer names this workspace and where its tunnels live. What else a key can do is in the{' '}
              <Anchor href={docsUrl} underline="always">
                API reference
              </Anchor>
              .
            </Text>
            <CopyBlock text={curlCommand('adit_…')} name="Copy command" />
          </Timeline.Item>
          <Timeline.Item bullet="3" title="Open a tunnel">
            <Text size="sm">
              Give the key to the tunnel client, the program on your machine that opens tunnels and sends the
              key along. What goes through shows up here within a minute or so.
            </Text>
          </Timeline.Item>
        </Timeline>
      </Stack>
    </Paper>
  )
}
