// Access rules in one line: of a name, or of the client of a tunnel.
import { Group, Text } from '@mantine/core'
import { LockIcon } from '../icons.tsx'

const NETWORKS_SHOWN = 3

interface AccessSummaryProps {
  /** Undefined if none is required. */
  password: string | undefined
  allowIp: readonly string[]
}

export function AccessSummary({ password, allowIp }: AccessSummaryProps) {
  if (password === undefined && allowIp.length === 0) return null
  const more = allowIp.length - NETWORKS_SHOWN
  const rules = [
    password,
    allowIp.length > 0 &&
      `Only from ${allowIp.slice(0, NETWORKS_SHOWN).join(', ')}${more > 0 ? ` and ${more} more` : ''}`,
  ]
  return (
    <Group gap={6} wrap="nowrap" align="flex-start">
      <Text span c="dimmed" lh={1.2}>
        <LockIcon size={14} />
      </Text>
      <Text size="xs" title={allowIp.join(', ')}>
        {rules.filter(Boolean).join(' · ')}
      </Text>
    </Group>
  )
}
