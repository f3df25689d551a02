// Search, and the fields of the filter, which open on request.
import { Button, CloseButton, Collapse, Group, Indicator, NativeSelect, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { memo, useId } from 'react'
import { LIMITS } from '../../../../src/inspector/api.ts'
import { SearchInput } from '../../components/lists/search-input.tsx'
import { FilterIcon } from '../../icons.tsx'
import type { LiveState } from '../live/live-requests.ts'
import { useLive } from '../live/use-live.ts'
import { countFilters, type Filter, NO_FILTER, parseStatus } from './filter.ts'
import { kindNames } from './format.ts'
import classes from './list.module.css'

interface FilterBarProps {
  filter: Filter
  onChange: (filter: Filter) => void
}

/** Memoized: the list changes with every request. */
export const FilterBar = memo(function FilterBar({ filter, onChange }: FilterBarProps) {
  const [opened, { toggle }] = useDisclosure()
  const fields = useId()
  const count = countFilters(filter)
  return (
    <>
      <Group gap="xs" wrap="nowrap">
        <SearchInput
          label="Search in everything"
          placeholder="Search everything"
          value={filter.search}
          onChange={(search) => onChange({ ...filter, search: search.slice(0, LIMITS.queryChars) })}
        />
        <Indicator disabled={count === 0} label={count} size={16} color="teal">
          <Button
            variant="default"
            px="sm"
            leftSection={<FilterIcon size={16} />}
            aria-expanded={opened}
            aria-controls={fields}
            onClick={toggle}
          >
            Filter
          </Button>
        </Indicator>
      </Group>
      <Collapse expanded={opened} id={fields}>
        <Fields filter={filter} onChange={onChange} />
        {count > 0 && (
          <Button
            mt="xs"
            size="xs"
            variant="subtle"
            onClick={() => onChange({ ...NO_FILTER, search: filter.search })}
          >
            Clear filter
          </Button>
        )}
      </Collapse>
    </>
  )
})

const any = (label: string) => ({ value: '', label })

/** Separated by spaces. */
const listMethods = ({ requests }: LiveState) =>
  [...new Set(requests.map(({ method }) => method))].sort().join(' ')

function Fields({ filter, onChange }: FilterBarProps) {
  const tunnels = useLive((state) => state.tunnels)
  const methods = useLive(listMethods).split(' ').filter(Boolean)
  const statuses = useId()
  const set = (name: keyof Filter) => (event: { currentTarget: { value: string } }) =>
    onChange({ ...filter, [name]: event.currentTarget.value.slice(0, LIMITS.queryChars) })
  return (
    <div className={classes.fields}>
      <NativeSelect
        label="Method"
        data={[any('Any'), ...methods]}
        value={filter.method}
        onChange={set('method')}
      />
      <TextInput
        label="Status"
        placeholder="404, 4xx, none"
        list={statuses}
        autoComplete="off"
        error={
          filter.status !== '' && parseStatus(filter.status) === undefined && 'Use 404, 4xx, 400-499 or none'
        }
        value={filter.status}
        onChange={set('status')}
      />
      <datalist id={statuses}>
        {['2xx', '3xx', '4xx', '5xx', 'none'].map((value) => (
          <option key={value} value={value} />
        ))}
      </datalist>
      <NativeSelect
        label="Kind"
        data={[any('Any'), ...Object.entries(kindNames).map(([value, label]) => ({ value, label }))]}
        value={filter.kind}
        onChange={set('kind')}
      />
      <NativeSelect
        label="Tunnel"
        data={[any('All'), ...tunnels.map(({ name }) => name).filter(Boolean)]}
        value={filter.tunnel}
        onChange={set('tunnel')}
      />
      <TextInput
        label="Path contains"
        className={classes.wide ?? ''}
        autoComplete="off"
        rightSection={
          filter.path && (
            <CloseButton
              size="sm"
              aria-label="Clear path"
              onClick={() => onChange({ ...filter, path: '' })}
            />
          )
        }
        value={filter.path}
        onChange={set('path')}
      />
    </div>
  )
}
