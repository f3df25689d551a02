// Tells owners and admins what needs attention: quotas, edges that do not report, rejected keys.
import { Alert, Anchor } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Output } from '../api.ts'
import { RelativeTime } from '../components/relative-time.tsx'
import { formatDay } from '../format.ts'
import { WarningIcon } from '../icons.tsx'
import { shortKey } from '../keys/key-cells.tsx'
import { noticesQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { formatQuota } from './quotas.tsx'

type Notice = Output<'notices.list'>['notices'][number]

/** Keys that expire have a list of their own. */
export function Notices() {
  const { slug, role, canManage } = useWorkspace()
  const { data } = useQuery({ ...noticesQuery(slug), enabled: canManage })
  if (!canManage) return null
  return data?.notices.map(({ kind, quota, edge, webhook, key, request }) => {
    if (request)
      return (
        <Warning key={request.id} title="An API key is requested">
          {request.userName} requests an API key{request.label && ` (${request.label})`}.{' '}
          <Anchor component={Link} href={`/w/${slug}/keys`} inherit underline="always">
            Approve or decline it
          </Anchor>
        </Warning>
      )
    if (quota) return <QuotaNotice key={quota.kind} {...quota} />
    if (edge)
      return (
        <Warning key={edge.id} title={`Edge ${edge.name} is not reporting`}>
          Its last report was <RelativeTime at={edge.lastSyncAt} />. Tunnels of this workspace were open
          there; their clients reconnect when the edge is back.
        </Warning>
      )
    if (webhook)
      return (
        <Warning key={webhook.id} title="A webhook was disabled">
          {role === 'owner' ? (
            <Anchor component={Link} href={`/w/${slug}/webhooks/${webhook.id}`} inherit underline="always">
              {webhook.url}
            </Anchor>
          ) : (
            webhook.url
          )}
          : <RelativeTime at={webhook.disabledAt} />. It misses all events until an owner enables it again.
        </Warning>
      )
    if (kind === 'key-rejected' && key)
      return (
        <Warning key={key.id} title="High traffic from an inactive API key">
          {key.label && `${key.label}, `}
          <span className="mono">{shortKey(key.lastFour)}</span>: find the program that still uses it and give
          it a{' '}
          <Anchor component={Link} href={`/w/${slug}/keys`} inherit underline="always">
            new key
          </Anchor>
          . If no program of yours uses it, the key may have leaked.
        </Warning>
      )
    return null
  })
}

function QuotaNotice({ kind, percent, limit, renewsAt }: NonNullable<Notice['quota']>) {
  const isReached = percent === 100
  const effects = {
    bytes: 'Edges reject traffic and new tunnels of this workspace.',
    requests: 'Edges reject traffic and new tunnels of this workspace.',
    tunnels: 'Close a tunnel to open another one.',
    keys: 'Revoke a key to create another one.',
  }
  const names = { bytes: 'Traffic', requests: 'Request', tunnels: 'Open tunnel', keys: 'API key' }
  return (
    <Warning
      color={isReached ? 'red' : 'amber'}
      title={isReached ? `${names[kind]} quota reached` : `${names[kind]} quota 80% used`}
    >
      {isReached && effects[kind]} The limit is {formatQuota(kind, limit)}
      {renewsAt !== null && `, and renews on ${formatDay(renewsAt)} at 00:00 UTC`}.
    </Warning>
  )
}

interface WarningProps {
  title: string
  color?: string
  children: ReactNode
}

const Warning = ({ title, color = 'amber', children }: WarningProps) => (
  <Alert color={color} icon={<WarningIcon />} title={title} style={{ overflowWrap: 'anywhere' }}>
    {children}
  </Alert>
)
