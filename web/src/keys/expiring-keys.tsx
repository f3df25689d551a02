// Tells owners and admins which API keys expire soon.
import { Alert, Anchor, List, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from 'wouter'
import { RelativeTime } from '../components/relative-time.tsx'
import { formatCount } from '../format.ts'
import { WarningIcon } from '../icons.tsx'
import { noticesQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { shortKey } from './key-cells.tsx'

const SHOWN_MAX = 3

/** Renders nothing for members, who cannot rotate keys. */
export function ExpiringKeys({ isLinked }: { isLinked: boolean }) {
  const { slug, canManage } = useWorkspace()
  const { data } = useQuery({ ...noticesQuery(slug), enabled: canManage })
  const keys = data?.notices.flatMap(({ kind, key }) => (kind === 'key-expiry' && key ? key : [])) ?? []
  if (!canManage || keys.length === 0) return null
  const isOne = keys.length === 1
  return (
    <Alert
      color="amber"
      icon={<WarningIcon />}
      title={isOne ? 'An API key expires soon' : `${formatCount(keys.length)} API keys expire soon`}
    >
      <List size="sm" spacing={2}>
        {keys.slice(0, SHOWN_MAX).map(({ id, label, lastFour, expiresAt }) => (
          <List.Item key={id} style={{ overflowWrap: 'anywhere' }}>
            {label && `${label}, `}
            <span className="mono">{shortKey(lastFour)}</span>: {expiresAt && <RelativeTime at={expiresAt} />}
          </List.Item>
        ))}
      </List>
      {keys.length > SHOWN_MAX && <Text size="sm">and {formatCount(keys.length - SHOWN_MAX)} more</Text>}
      <Text size="sm" mt="xs">
        {isLinked ? (
          <Anchor component={Link} href={`/w/${slug}/keys`} inherit underline="always">
            Rotate
          </Anchor>
        ) : (
          'Rotate'
        )}{' '}
        {isOne ? 'it if it is' : 'those that are'} still in use.
      </Text>
    </Alert>
  )
}
