// Begins single sign-on at the identity provider.
import { Button, Divider } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { call } from '../api.ts'
import { ErrorAlert } from '../components/lists/query-states.tsx'
import { allowSignedOut } from '../queries.ts'

/** `link` is the token of an invitation, which the sign-in accepts. */
export function SsoButton({ link, children }: { link?: string; children: ReactNode }) {
  const start = useMutation({
    mutationFn: () => call('sign-in.sso', link === undefined ? {} : { link }),
    onSuccess: ({ url }) => location.assign(url),
    ...allowSignedOut,
  })
  return (
    <>
      <Divider label="or" />
      <ErrorAlert error={start.error} />
      <Button
        variant="default"
        loading={start.isPending || start.isSuccess}
        onClick={() => start.mutate()}
        styles={{
          label: { whiteSpace: 'normal', overflowWrap: 'anywhere' },
          root: { minHeight: 36, height: 'auto' },
        }}
      >
        {children}
      </Button>
    </>
  )
}
