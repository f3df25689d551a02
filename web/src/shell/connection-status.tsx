// While the server has not answered, or cannot.
import { Alert, Button, Center, Loader, Stack, Text, Title, VisuallyHidden } from '@mantine/core'
import { useSyncExternalStore } from 'react'
import { isTransient } from '../api-error.ts'
import { Logo, WarningIcon } from '../icons.tsx'
import { queryClient } from '../queries.ts'

const cache = queryClient.getQueryCache()
const subscribe = (tell: () => void) => cache.subscribe(tell)

const isCutOff = () =>
  cache.getAll().some(({ state }) => {
    const reason = state.error ?? state.fetchFailureReason
    return isTransient(reason) && reason.code === 'unreachable'
  })

export function UnreachableBanner() {
  if (!useSyncExternalStore(subscribe, isCutOff)) return null
  return (
    <Alert color="amber" icon={<WarningIcon />} title="Adit cannot be reached" mb="lg" role="alert">
      What you see may be out of date. This page tries again by itself.
    </Alert>
  )
}

/** Before it is known who is signed in there is no page to show. */
export function LoadingScreen({ error, retry }: { error: Error | null; retry: () => unknown }) {
  return (
    <Center component="main" mih="100dvh" p="md">
      <Stack align="center" maw={420} ta="center">
        <Logo size={48} />
        {error ? (
          <>
            <Title order={1} size="h2">
              {isTransient(error) ? 'Adit cannot be reached' : 'The dashboard could not be loaded'}
            </Title>
            <Text c="dimmed">
              {isTransient(error)
                ? 'The server does not answer just now. This page tries again by itself, every few seconds.'
                : error.message}
            </Text>
            <Button variant="default" onClick={() => retry()}>
              Try again
            </Button>
          </>
        ) : (
          <>
            <VisuallyHidden component="h1">Adit is loading</VisuallyHidden>
            <Loader color="amber" aria-label="Loading" role="status" />
          </>
        )}
      </Stack>
    </Center>
  )
}
