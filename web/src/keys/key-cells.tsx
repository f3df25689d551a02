// Parts of a key that the table and the cards show.
import { Badge, Group, Stack, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import type { KeyState } from '../../../src/lib/credentials/key-state.ts'
import { CopyIconButton } from '../components/copy.tsx'
import { RelativeTime } from '../components/relative-time.tsx'
import { operatorName } from '../format.ts'
import type { Key } from '../queries.ts'
import styles from './keys.module.css'

/** `adit_…x7Qp` */
export const shortKey = (lastFour: string): string => `adit_…${lastFour}`

export function KeyLabel({ label }: { label: string }) {
  if (!label)
    return (
      <Text fs="italic" c="dimmed" size="sm">
        No label
      </Text>
    )
  return (
    <Text fw={600} size="sm" style={{ overflowWrap: 'anywhere' }}>
      {label}
    </Text>
  )
}

/** Whose personal key it is, and which agent has signed in with it; nothing for a key of the workspace. */
export function KeyUser({ apiKey: { user, agent } }: { apiKey: Key }) {
  if (!user) return null
  if (agent)
    return (
      <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
        {user.isYou ? 'Your agent' : `Agent of ${user.name}`} ({agent.host}), valid at /mcp only
        {agent.managesKeys && ', manages API keys'}
      </Text>
    )
  return (
    <Text size="xs" c="dimmed">
      {user.isYou ? 'Your personal key' : `Personal key of ${user.name}`}
    </Text>
  )
}

export function KeyId({ apiKey: { id, lastFour } }: { apiKey: Key }) {
  return (
    <div className={styles.id}>
      <Text size="xs" className="mono">
        {shortKey(lastFour)}
      </Text>
      <Group gap={4} wrap="nowrap">
        <Text size="xs" c="dimmed" className="mono">
          {id}
        </Text>
        <CopyIconButton text={id} name={`Copy ID ${id}`} />
      </Group>
    </div>
  )
}

const creatorNames: Record<Key['createdBy']['kind'], (name: string) => string> = {
  user: (name) => name,
  key: (name) => `API key “${name}”`,
  operator: operatorName,
}

export const creatorName = ({ kind, name }: Key['createdBy']) => creatorNames[kind](name)

export function Created({ apiKey: { createdAt, createdBy } }: { apiKey: Key }) {
  return (
    <>
      <RelativeTime at={createdAt} /> by {creatorName(createdBy)}
    </>
  )
}

/** Nothing unless the key is listed without its successor. */
export function ReplacedBy({ apiKey: { successor } }: { apiKey: Key }) {
  if (!successor) return null
  return (
    <Text size="xs" c="dimmed">
      Replaced by <span className="mono">{shortKey(successor.lastFour)}</span>
    </Text>
  )
}

const statuses: Record<KeyState, (key: Key) => ReactNode> = {
  active: ({ expiresAt }) => <Badged color="green" name="Active" prefix="Expires " at={expiresAt} />,
  revoked: ({ revokedAt }) => <Badged color="gray" name="Revoked" at={revokedAt} />,
  expired: ({ expiresAt }) => <Badged color="gray" name="Expired" at={expiresAt} />,
}

export const Status = ({ apiKey }: { apiKey: Key }) => statuses[apiKey.state](apiKey)

interface BadgedProps {
  color: string
  name: string
  prefix?: string
  at: string | null
}

function Badged({ color, name, prefix, at }: BadgedProps) {
  if (!at) return <Badge color={color}>{name}</Badge>
  return (
    <Stack gap={2} className={styles.status ?? ''}>
      <Badge color={color}>{name}</Badge>
      <Text size="xs" c="dimmed">
        {prefix}
        <RelativeTime at={at} />
      </Text>
    </Stack>
  )
}
