// The list of open tunnels, with search, order and pages.
import { Group, Select, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import type { Output } from '../api.ts'
import { Pager, usePager } from '../components/lists/pager.tsx'
import { EmptyState } from '../components/lists/query-states.tsx'
import { matchesSearch, SearchInput } from '../components/lists/search-input.tsx'
import { compareNames, formatCount } from '../format.ts'
import { SearchIcon } from '../icons.tsx'
import type { Tunnel } from '../queries.ts'
import { NoTunnels } from './no-tunnels.tsx'
import { edgeNames } from './tunnel-cells.tsx'
import { TunnelList } from './tunnel-list.tsx'

/** Fewer tunnels are seen at a glance and need no search. */
const SEARCH_FROM = 6

const orders = {
  name: { label: 'By name', compare: (a: Tunnel, b: Tunnel) => compareNames(a.name, b.name) },
  newest: { label: 'Newest first', compare: (a: Tunnel, b: Tunnel) => b.openedAt.localeCompare(a.openedAt) },
  requests: { label: 'Most requests', compare: (a: Tunnel, b: Tunnel) => b.requests - a.requests },
  traffic: { label: 'Most traffic', compare: (a: Tunnel, b: Tunnel) => traffic(b) - traffic(a) },
  streams: { label: 'Most in progress', compare: (a: Tunnel, b: Tunnel) => b.streams - a.streams },
}
type Order = keyof typeof orders

const orderOptions = Object.entries(orders).map(([value, { label }]) => ({ value, label }))

const traffic = ({ bytesIn, bytesOut }: Tunnel): number => bytesIn + bytesOut

const matches = (tunnel: Tunnel, search: string): boolean =>
  matchesSearch(
    search,
    tunnel.url,
    tunnel.type,
    tunnel.key.label,
    tunnel.key.id,
    edgeNames(tunnel),
    tunnel.client.address,
    tunnel.client.version,
  )

export function OpenTunnels({ tunnels, isComplete }: Output<'tunnels.list'>) {
  const [search, setSearch] = useState('')
  const [order, setOrder] = useState<Order>('name')
  const found = tunnels.filter((tunnel) => matches(tunnel, search)).sort(orders[order].compare)
  const pager = usePager(found)
  const startAgain = () => pager.setPage(1)
  if (tunnels.length === 0) return <NoTunnels />
  return (
    <Stack>
      {(tunnels.length >= SEARCH_FROM || search !== '') && (
        <Group justify="space-between" gap="sm">
          <SearchInput
            label="Search tunnels"
            placeholder="Name, key, client or edge"
            value={search}
            onChange={(value) => {
              setSearch(value)
              startAgain()
            }}
          />
          <Select
            aria-label="Order"
            w={170}
            allowDeselect={false}
            data={orderOptions}
            value={order}
            onChange={(value) => {
              if (value) setOrder(value as Order)
              startAgain()
            }}
          />
        </Group>
      )}
      {found.length === 0 ? (
        <EmptyState icon={<SearchIcon size={36} />} title="No matching tunnels">
          None of the {formatCount(tunnels.length)} open tunnels matches “{search}”.
        </EmptyState>
      ) : (
        <TunnelList tunnels={pager.items} />
      )}
      <Pager pager={pager} name="Pages of tunnels" />
      {!isComplete && (
        <Text size="sm" c="dimmed">
          Only the first {formatCount(tunnels.length)} tunnels by name are listed.
        </Text>
      )}
    </Stack>
  )
}
