// Tunnel names of a workspace: those that are reserved, and those that were used recently.
import { Button, Group, Paper, Stack, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useState } from 'react'
import type { Output } from '../api.ts'
import { useDialog } from '../components/dialogs/use-dialog.ts'
import { Pager, usePager } from '../components/lists/pager.tsx'
import { EmptyState } from '../components/lists/query-states.tsx'
import rows from '../components/lists/rows.module.css'
import { matchesSearch, SearchInput } from '../components/lists/search-input.tsx'
import { compareNames, formatCount } from '../format.ts'
import { PlusIcon, SearchIcon, TunnelIcon } from '../icons.tsx'
import type { TunnelName } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { AccessRulesDialog } from './access-rules-dialog.tsx'
import { NameRow } from './name-row.tsx'
import { ReserveNameDialog } from './reserve-name-dialog.tsx'

const SEARCH_FROM = 6

const byName = (a: TunnelName, b: TunnelName): number => compareNames(a.name, b.name)

export function NameList({ names, reservedMax }: Output<'names.list'>) {
  const { canManage } = useWorkspace()
  const [search, setSearch] = useState('')
  const [isReserving, reserving] = useDisclosure()
  const editing = useDialog<TunnelName>()
  const found = names.filter(({ host, access }) => matchesSearch(search, host, access.user)).sort(byName)
  const pager = usePager(found)
  const reserved = names.filter((name) => name.reserved).length
  return (
    <Stack>
      <Group justify="space-between" gap="sm">
        <Text size="sm" c="dimmed" maw={600} flex="1 1 280px">
          Names expire 24 hours after their last use, unless you reserve them. Access rules apply to every
          tunnel with the name.
        </Text>
        {canManage && (
          <Button leftSection={<PlusIcon />} onClick={reserving.open}>
            Reserve name
          </Button>
        )}
      </Group>
      {(names.length >= SEARCH_FROM || search !== '') && (
        <Group>
          <SearchInput
            label="Search names"
            placeholder="Name or user"
            value={search}
            onChange={(value) => {
              setSearch(value)
              pager.setPage(1)
            }}
          />
        </Group>
      )}
      {found.length === 0 ? (
        <NoNames search={search} />
      ) : (
        <Paper>
          <ul className={rows.rows} aria-label="Names">
            {pager.items.map((name) => (
              <NameRow key={name.name} name={name} onEdit={() => editing.open(name)} />
            ))}
          </ul>
        </Paper>
      )}
      <Pager pager={pager} name="Pages of names" />
      <Text size="sm" c="dimmed">
        {formatCount(reserved)} of {formatCount(reservedMax)} names reserved
      </Text>
      <ReserveNameDialog opened={isReserving} onClose={reserving.close} />
      <AccessRulesDialog name={editing.item} opened={editing.opened} onClose={editing.close} />
    </Stack>
  )
}

function NoNames({ search }: { search: string }) {
  if (search !== '')
    return (
      <EmptyState icon={<SearchIcon size={36} />} title="No matching names">
        No name matches “{search}”.
      </EmptyState>
    )
  return (
    <EmptyState icon={<TunnelIcon size={36} />} title="No names yet">
      Names appear here when you open a tunnel or reserve a name.
    </EmptyState>
  )
}
