// The last net: a mistake of ours, or a part of the page that a newer release has taken away.
import { Button, Center, Stack, Text, Title } from '@mantine/core'
import { Component, type ReactNode } from 'react'

export class ErrorBoundary extends Component<{ children: ReactNode }, { failed: boolean }> {
  override state = { failed: false }

  static getDerivedStateFromError() {
    return { failed: true }
  }

  override render() {
    if (!this.state.failed) return this.props.children
    return (
      <Center component="main" mih="60vh" p="md">
        <Stack align="center" maw={420} ta="center">
          <Title order={1} size="h2">
            This page has failed
          </Title>
          <Text c="dimmed">It may be older than the server. Loading it again usually helps.</Text>
          <Button onClick={() => location.reload()}>Load again</Button>
        </Stack>
      </Center>
    )
  }
}
