// Error boundary of the whole app: for a bug, or a chunk that a newer release has removed.
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
            Something went wrong
          </Title>
          <Text c="dimmed">The page may have been updated. Reload it to continue.</Text>
          <Button onClick={() => location.reload()}>Reload page</Button>
        </Stack>
      </Center>
    )
  }
}
