// An API key as a card, for phones, with the keys that it has replaced.
import { Group, Paper, Stack, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { RelativeTime } from '../components/relative-time.tsx'
import type { Key, ListedKey } from '../queries.ts'
import { Created, KeyId, KeyLabel, KeyUser, ReplacedBy, Status } from './key-cells.tsx'
import styles from './keys.module.css'

interface KeyCardProps {
  apiKey: ListedKey
  renderActions: (key: Key) => ReactNode
}

export function KeyCard({ apiKey, renderActions }: KeyCardProps) {
  return (
    <Paper component="li" p="md" style={{ listStyle: 'none' }}>
      <Details apiKey={apiKey} actions={renderActions(apiKey)}>
        <KeyLabel label={apiKey.label} />
      </Details>
      <ReplacedBy apiKey={apiKey} />
      {apiKey.predecessors.map((older) => (
        <div key={older.id} className={styles.replaced}>
          <Details apiKey={older} actions={renderActions(older)}>
            <Text size="sm">Replaced key</Text>
          </Details>
        </div>
      ))}
    </Paper>
  )
}

function Details({ apiKey, actions, children }: { apiKey: Key; actions: ReactNode; children: ReactNode }) {
  return (
    <Stack gap={6}>
      <Group justify="space-between" wrap="nowrap" align="flex-start">
        {children}
        <Status apiKey={apiKey} />
      </Group>
      <KeyUser apiKey={apiKey} />
      <KeyId apiKey={apiKey} />
      <Text size="sm" c="dimmed">
        Created <Created apiKey={apiKey} />
      </Text>
      <Group justify="space-between">
        <Text size="sm" c="dimmed">
          {apiKey.lastUsedAt ? 'Last used ' : 'Never used'}
          {apiKey.lastUsedAt && <RelativeTime at={apiKey.lastUsedAt} />}
        </Text>
        {actions && <div className={styles.actions}>{actions}</div>}
      </Group>
    </Stack>
  )
}
