// Shows which terminal asks for an API key, and lets the user approve or deny it.
import { Alert, Button, Group, NativeSelect, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../api.ts'
import { ApiError } from '../api-error.ts'
import { Form } from '../components/forms/form.tsx'
import { useDeliberate } from '../components/forms/use-deliberate.ts'
import { ErrorAlert } from '../components/lists/query-states.tsx'
import { RelativeTime } from '../components/relative-time.tsx'
import { WarningIcon } from '../icons.tsx'
import { type Expiry, ExpiryField, NEVER, toExpiresAt } from '../keys/expiry-field.tsx'
import { lastWorkspace } from '../paths.ts'
import { type Device, deviceQuery, queryClient } from '../queries.ts'
import { AuthLayout } from '../sign-in/auth-layout.tsx'
import classes from './device.module.css'

const DEFAULT_DAYS = 90

interface ApproveDeviceProps {
  code: string
  device: Device
  user: { name: string; email: string }
}

export function ApproveDevice({ code, device, user }: ApproveDeviceProps) {
  const { workspaces } = device
  const [slug, setSlug] = useState(() => initialWorkspace(device))
  const workspace = workspaces.find((each) => each.slug === slug)
  const daysMax = workspace?.keyDaysMax ?? null
  const [chosen, setChosen] = useState<Expiry>()
  const expiry = chosen ?? defaultExpiry(daysMax)
  const isDeliberate = useDeliberate()
  const decide = useMutation({
    mutationFn: (approves: boolean) => {
      if (!approves) return call('devices.deny', { code })
      const expiresAt = toExpiresAt(expiry)
      return call('devices.approve', { workspace: slug, code, ...(expiresAt && { expiresAt }) })
    },
    onSuccess: (decided) => queryClient.setQueryData(deviceQuery(code).queryKey, { ...device, ...decided }),
  })
  return (
    <AuthLayout
      title="Sign in a terminal"
      description="A terminal wants to sign in. Check that it shows this code."
    >
      <Text className={classes.code}>{device.code}</Text>
      <Facts device={device} />
      <Alert color="amber" icon={<WarningIcon />}>
        Approve only if you just ran <code>adit login</code> and your terminal shows the same code. Otherwise
        you give someone else access to your workspace.
      </Alert>
      <Form onSubmit={() => decide.mutate(true)}>
        {workspace ? (
          <>
            <NativeSelect
              label="Workspace"
              // Two workspaces may have the same name.
              data={workspaces.map(({ slug: value, name }) => ({ value, label: `${name} (${value})` }))}
              value={slug}
              onChange={(event) => {
                setSlug(event.currentTarget.value)
                // The policy of the other workspace may not allow it.
                setChosen(undefined)
              }}
            />
            {workspace.needsRequest && (
              <Text size="sm">
                Admins and owners of this workspace create API keys. If you approve, they get a request, and
                your terminal waits. If they have approved one already, your terminal gets the key at once.
              </Text>
            )}
            {workspace.obstacle === null ? (
              <ExpiryField daysMax={daysMax} value={expiry} onChange={setChosen} />
            ) : (
              <Text size="sm">{workspace.obstacle}</Text>
            )}
          </>
        ) : (
          <Text size="sm">You are not a member of a workspace. Ask a workspace owner to invite you.</Text>
        )}
        <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
          Signed in as {user.name} ({user.email}).
        </Text>
        <ErrorAlert error={describeError(decide.error)} />
        <Group grow>
          <Button variant="default" disabled={decide.isPending} onClick={() => decide.mutate(false)}>
            Deny
          </Button>
          {workspace?.obstacle === null && (
            <Button type="submit" disabled={!isDeliberate} loading={decide.isPending}>
              Approve
            </Button>
          )}
        </Group>
      </Form>
    </AuthLayout>
  )
}

function Facts({ device: { deviceName, address, requestedAt } }: { device: Device }) {
  return (
    <dl className={classes.facts}>
      <dt>Host name</dt>
      <dd>{deviceName}</dd>
      <dt>IP address</dt>
      <dd>{address}</dd>
      <dt>Requested</dt>
      <dd>
        <RelativeTime at={requestedAt} />
      </dd>
    </dl>
  )
}

function initialWorkspace({ workspaces }: Device): string {
  const usable = workspaces.filter(({ obstacle }) => obstacle === null)
  const choices = usable.length > 0 ? usable : workspaces
  return (choices.find(({ slug }) => slug === lastWorkspace()) ?? choices[0])?.slug ?? ''
}

/** `NEVER` means the maximum lifetime if the policy has one. */
const defaultExpiry = (daysMax: number | null): Expiry =>
  daysMax !== null && daysMax <= DEFAULT_DAYS ? NEVER : { ...NEVER, choice: String(DEFAULT_DAYS) }

const describeError = (error: Error | null): Error | null =>
  error instanceof ApiError && error.code === 'not_found'
    ? new Error('The code has expired. Run adit login again.')
    : error
