// Loading and error screens for a server that has not responded, or cannot be reached.
import { Alert, Button, Center, Loader, Stack, Text, Title, VisuallyHidden } from '@mantine/core'
import { useSyncExternalStore } from 'react'
import { isTransient } from '../api-error.ts'
import { Logo, WarningIcon } from '../icons.tsx'
import { queryClient } from '../queries.ts'

const cache = queryClient.getQueryCache()
const subscribe = (notify: () => void) => cache.subscribe(notify)

/** Active queries only: those that no component uses are not retried, so their errors would never clear. */
const isOffline = () =>
  cache.getAll().some((query) => {
    const reason = query.state.error ?? query.state.fetchFailureReason
    return query.isActive() && isTransient(reason) && reason.code === 'unreachable'
  })

export function OfflineBanner() {
  if (!useSyncExternalStore(subscribe, isOffline)) return null
  return (
    <Alert color="amber" icon={<WarningIcon />} title="Cannot reach the server" mb="lg" role="alert">
      The data on this page may be out of date. Retrying automatically every few seconds.
    </Alert>
  )
}

/** Shown until the session is known. */
export function LoadingScreen({ error, retry }: { error: Error | null; retry: () => unknown }) {
  return (
    <Center component="main" mih="100dvh" p="md">
      <Stack align="center" maw={420} ta="center">
        <Logo size={48} />
        {error ? (
          <>
            <Title order={1} size="h2">
              {isTransient(error) ? 'Cannot reach the server' : 'Failed to load the dashboard'}
            </Title>
            <Text c="dimmed">
              {error.message}
              {isTransient(error) && ' Retrying automatically every few seconds.'}
            </Text>
            <Button variant="default" onClick={() => retry()}>
              Retry now
            </Button>
          </>
        ) : (
          <>
            <VisuallyHidden component="h1">Loading Adit</VisuallyHidden>
            <Loader color="amber" aria-label="Loading" role="status" />
          </>
        )}
      </Stack>
    </Center>
  )
}
