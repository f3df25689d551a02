// API keys as a table, for wide screens. Below a key are those that it has replaced.
import { Paper, Table, Text, VisuallyHidden } from '@mantine/core'
import type { ReactNode } from 'react'
import { RelativeTime } from '../components/relative-time.tsx'
import type { Key, ListedKey } from '../queries.ts'
import { creatorName, KeyId, KeyLabel, KeyUser, ReplacedBy, Status } from './key-cells.tsx'
import styles from './keys.module.css'

interface KeyTableProps {
  keys: ListedKey[]
  withActions: boolean
  renderActions: (key: Key) => ReactNode
}

export function KeyTable({ keys, withActions, renderActions }: KeyTableProps) {
  return (
    <Paper>
      <Table.ScrollContainer minWidth={760} type="native">
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">Key</Table.Th>
              <Table.Th scope="col">Created</Table.Th>
              <Table.Th scope="col" className="nowrap">
                Last used
              </Table.Th>
              <Table.Th scope="col">Status</Table.Th>
              {withActions && (
                <Table.Th scope="col">
                  <VisuallyHidden>Actions</VisuallyHidden>
                </Table.Th>
              )}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {keys.flatMap((key) => [
              <Row key={key.id} apiKey={key} actions={withActions && renderActions(key)}>
                <KeyLabel label={key.label} />
                <KeyUser apiKey={key} />
                <KeyId apiKey={key} />
                <ReplacedBy apiKey={key} />
              </Row>,
              ...key.predecessors.map((older) => (
                <Row
                  key={older.id}
                  apiKey={older}
                  className={styles.predecessor}
                  actions={withActions && renderActions(older)}
                >
                  <Text size="sm">
                    <VisuallyHidden>{key.label || key.id}: </VisuallyHidden>Replaced key
                  </Text>
                  <KeyId apiKey={older} />
                </Row>
              )),
            ])}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Paper>
  )
}

interface RowProps {
  apiKey: Key
  /** False if there is no column for them. */
  actions: ReactNode
  className?: string | undefined
  children: ReactNode
}

function Row({ apiKey, actions, className, children }: RowProps) {
  return (
    <Table.Tr className={className}>
      <Table.Th scope="row" fw={400}>
        {children}
      </Table.Th>
      <Table.Td>
        <span className="nowrap">
          <RelativeTime at={apiKey.createdAt} />
        </span>
        <Text size="xs" c="dimmed">
          by {creatorName(apiKey.createdBy)}
        </Text>
      </Table.Td>
      <Table.Td className="nowrap">
        {apiKey.lastUsedAt ? <RelativeTime at={apiKey.lastUsedAt} /> : 'Never'}
      </Table.Td>
      <Table.Td className="nowrap">
        <Status apiKey={apiKey} />
      </Table.Td>
      {actions !== false && <Table.Td>{actions}</Table.Td>}
    </Table.Tr>
  )
}
