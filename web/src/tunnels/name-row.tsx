import { Badge, Button, Group, Skeleton, Stack, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useRef } from 'react'
import { call } from '../api.ts'
import { CopyIconButton } from '../components/copy.tsx'
import { restoreFocus } from '../components/focus.ts'
import { ErrorAlert } from '../components/lists/query-states.tsx'
import { RelativeTime } from '../components/relative-time.tsx'
import { showToast } from '../components/toast.tsx'
import { formatCount } from '../format.ts'
import { tunnelUrl } from '../overview/commands.ts'
import { invalidateWorkspace, type TunnelName, workspaceQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { AccessSummary } from './access-summary.tsx'
import { HostName, publicAddress } from './tunnel-address.tsx'

interface NameRowProps {
  name: TunnelName
  onEdit: () => void
}

export function NameRow({ name, onEdit }: NameRowProps) {
  const { slug, canManage } = useWorkspace()
  const { data: workspace } = useQuery(workspaceQuery(slug))
  if (!workspace) return <Skeleton h={44} component="li" />
  const url = name.url ?? tunnelUrl(name.host, workspace)
  const { host } = new URL(url)
  const address = publicAddress({ url })
  return (
    <li>
      <Group justify="space-between" gap="sm">
        <Stack gap={2} flex="1 1 300px" miw={0}>
          <Group gap="xs">
            <Group gap={4} wrap="nowrap" miw={0}>
              <HostName name={name.name} host={host} />
              <CopyIconButton text={address} name={`Copy ${address}`} />
            </Group>
            {name.reserved && <Badge color="teal">Reserved</Badge>}
            {name.open > 0 && <Badge color="green">{formatCount(name.open)} open</Badge>}
          </Group>
          <Text size="xs" c="dimmed">
            {name.open > 0 ? 'In use' : name.lastUsedAt ? 'Last used ' : 'Not used yet'}
            {name.open === 0 && name.lastUsedAt && <RelativeTime at={name.lastUsedAt} />}
          </Text>
          <AccessSummary
            password={name.access.user === null ? undefined : `Password required, user ${name.access.user}`}
            allowIp={name.access.allowIp}
          />
          {name.access.hostHeader !== null && <Text size="xs">Host header: {name.access.hostHeader}</Text>}
        </Stack>
        {canManage && (
          <Group gap="xs">
            <Button size="xs" variant="default" aria-label={`Access rules of ${name.name}`} onClick={onEdit}>
              Access rules
            </Button>
            {!hasRules(name) && <ReservationButton name={name} />}
          </Group>
        )}
      </Group>
    </li>
  )
}

/** A name with rules is always reserved. */
const hasRules = ({ access }: TunnelName): boolean =>
  access.user !== null || access.allowIp.length > 0 || access.hostHeader !== null

/** Needs no confirmation: a released name stays for a day, and can be reserved again. */
function ReservationButton({ name: { name, reserved } }: { name: TunnelName }) {
  const { slug } = useWorkspace()
  const button = useRef<HTMLButtonElement>(null)
  const change = useMutation({
    mutationFn: async () => {
      await call(reserved ? 'names.release' : 'names.reserve', { workspace: slug, name })
      await invalidateWorkspace(slug, 'names')
    },
    onSuccess: () =>
      showToast(reserved ? `Name ${name} released. It expires in 24 hours.` : `Name ${name} reserved.`),
    // A button that shows progress is disabled, and so loses the focus.
    onSettled: () => restoreFocus(() => button.current),
  })
  const label = reserved ? 'Release' : 'Reserve'
  return (
    <>
      <Button
        ref={button}
        size="xs"
        variant="default"
        miw={76}
        loading={change.isPending}
        aria-label={`${label} ${name}`}
        onClick={() => change.mutate()}
      >
        {label}
      </Button>
      <ErrorAlert error={change.error} />
    </>
  )
}
