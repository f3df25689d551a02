// What can be done with all requests of the list.
import { ActionIcon, Menu, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useMutation } from '@tanstack/react-query'
import { memo } from 'react'
import { API } from '../../../../src/inspector/api.ts'
import { ConfirmDialog } from '../../components/dialogs/confirm.tsx'
import { DownloadIcon, MoreIcon, TrashIcon } from '../../icons.tsx'
import { send } from '../api.ts'
import { exportHar } from '../detail/export-har.ts'
import { select } from '../live/selection.ts'
import { type Filter, toQuery } from './filter.ts'

interface ListMenuProps {
  filter: Filter
  isFiltered: boolean
  count: number
}

/** Memoized: the list changes with every request. */
export const ListMenu = memo(function ListMenu({ filter, isFiltered, count }: ListMenuProps) {
  const [opened, confirmation] = useDisclosure()
  const har = useMutation({ mutationFn: (reveal: boolean) => exportHar({ ...toQuery(filter), reveal }) })
  const which = isFiltered ? 'Export these' : 'Export all'
  return (
    <>
      <Menu width={260}>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label="Export or delete" loading={har.isPending}>
            <MoreIcon />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            leftSection={<DownloadIcon size={16} />}
            disabled={count === 0}
            onClick={() => har.mutate(false)}
          >
            {which} as HAR
          </Menu.Item>
          <Menu.Item
            leftSection={<DownloadIcon size={16} />}
            disabled={count === 0}
            onClick={() => har.mutate(true)}
          >
            {which} as HAR, secrets visible
          </Menu.Item>
          <Menu.Divider />
          <Menu.Item leftSection={<TrashIcon size={16} />} onClick={confirmation.open}>
            Delete all
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {har.error && (
        <Text size="xs" c="var(--mantine-color-error)" role="alert">
          {har.error.message}
        </Text>
      )}
      <ConfirmDialog
        opened={opened}
        onClose={confirmation.close}
        title="Delete all requests?"
        actionLabel="Delete all"
        onConfirm={() => send(API.requests, { method: 'DELETE' }).then(() => select(undefined))}
        successMessage="Requests deleted."
      >
        <Text size="sm">
          The inspector deletes what it has recorded, for the command line too. The tunnels stay open.
        </Text>
      </ConfirmDialog>
    </>
  )
})
