// The page /device: approves the sign-in of a terminal, `adit login`. A code in the URL only fills in the
// form.

import { Button, Skeleton, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useSearchParams } from 'wouter'
import { USER_CODE_CHARS_MAX } from '../../../src/contract/limits.ts'
import { ApiError } from '../api-error.ts'
import { Form } from '../components/forms/form.tsx'
import { LoadError } from '../components/lists/query-states.tsx'
import { deviceQuery, sessionQuery } from '../queries.ts'
import { LoadingScreen } from '../shell/connection-status.tsx'
import { AuthLayout } from '../sign-in/auth-layout.tsx'
import { ApproveDevice } from './approve-device.tsx'
import { DecidedDevice } from './decided-device.tsx'

export function DevicePage() {
  const [search, setSearch] = useSearchParams()
  // Without a session the user is sent to the sign-in page, and then back here.
  const session = useQuery(sessionQuery)
  const code = search.get('code')
  const open = (next: string) => setSearch({ code: next }, { replace: true })
  if (!session.data) return <LoadingScreen error={session.error} retry={session.refetch} />
  if (!code) return <EnterCode onSubmit={open} />
  return <RequestedDevice key={code} code={code} user={session.data.user} onOtherCode={open} />
}

interface EnterCodeProps {
  /** The code that was not accepted. */
  rejected?: string
  onSubmit: (code: string) => void
}

function EnterCode({ rejected = '', onSubmit }: EnterCodeProps) {
  const [code, setCode] = useState(rejected)
  const isUnchanged = code.trim() === rejected
  const submit = () => {
    if (!isUnchanged) onSubmit(code.trim())
  }
  return (
    <AuthLayout
      title="Sign in a terminal"
      description={
        <>
          Enter the code that <code>adit login</code> shows.
        </>
      }
    >
      <Form onSubmit={submit}>
        <TextInput
          label="Code"
          placeholder="BCDF-GHJK"
          autoComplete="off"
          autoCapitalize="characters"
          autoCorrect="off"
          spellCheck={false}
          required
          maxLength={USER_CODE_CHARS_MAX}
          autoFocus
          className="tabular"
          value={code}
          onChange={(event) => setCode(event.currentTarget.value)}
          error={
            isUnchanged &&
            rejected &&
            'This code is invalid, expired or already used. Check it in the terminal, or run adit login again.'
          }
        />
        <Button type="submit">Continue</Button>
      </Form>
    </AuthLayout>
  )
}

interface RequestedDeviceProps {
  code: string
  user: { name: string; email: string }
  onOtherCode: (code: string) => void
}

function RequestedDevice({ code, user, onOtherCode }: RequestedDeviceProps) {
  const device = useQuery(deviceQuery(code))
  if (device.data) {
    const { state, ...decided } = device.data
    if (state !== 'pending') return <DecidedDevice state={state} {...decided} />
    return <ApproveDevice code={code} device={device.data} user={user} />
  }
  const isWrong =
    device.error instanceof ApiError && ['not_found', 'invalid_request'].includes(device.error.code)
  if (isWrong) return <EnterCode rejected={code} onSubmit={onOtherCode} />
  return (
    <AuthLayout title="Sign in a terminal">
      {device.error ? (
        <LoadError error={device.error} retry={device.refetch} isRetrying={device.isFetching} />
      ) : (
        <output aria-label="Loading">
          <Skeleton h={220} />
        </output>
      )}
    </AuthLayout>
  )
}
