// Fields that filter the audit log.
import { Button, Select, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { membersQuery } from '../queries.ts'
import { useWorkspace } from '../session.tsx'
import { filterGroups } from './actions.ts'
import classes from './audit.module.css'
import type { AuditFilter } from './filter.ts'

const actions = Object.entries(filterGroups).map(([group, items]) => ({
  group,
  items: Object.entries(items).map(([value, [label]]) => ({ value, label })),
}))

interface FilterFieldsProps {
  filter: AuditFilter
  onChange: (filter: AuditFilter) => void
  /** Name of an actor or a target, if an entry is loaded that has it. */
  displayName: (id: string) => string
}

export function FilterFields({ filter, onChange, displayName }: FilterFieldsProps) {
  const { slug } = useWorkspace()
  const { data } = useQuery(membersQuery(slug))
  const members =
    data?.members.map(({ id, name, email }) => ({ value: id, label: `${name} (${email})` })) ?? []
  const actors = withSelected(members, filter.actor, displayName)
  const set = (name: keyof AuditFilter, value: string | null) => {
    const { [name]: _, ...others } = filter
    onChange(value ? { ...others, [name]: value } : others)
  }
  return (
    <div className={classes.filters}>
      <Select
        label="Actor"
        placeholder="Anyone"
        className={classes.wide ?? ''}
        searchable
        clearable
        data={actors}
        value={filter.actor ?? null}
        onChange={(value) => set('actor', value)}
      />
      <Select
        label="Action"
        placeholder="Any action"
        className={classes.wide ?? ''}
        searchable
        clearable
        data={actions}
        value={filter.action ?? null}
        onChange={(value) => set('action', value)}
      />
      {(['from', 'to'] as const).map((name) => (
        <TextInput
          key={name}
          label={name === 'from' ? 'From (UTC)' : 'To (UTC)'}
          type="date"
          value={filter[name] ?? ''}
          onChange={(event) => set(name, event.currentTarget.value)}
        />
      ))}
      {filter.target !== undefined && (
        <Button
          variant="default"
          aria-label={`Remove the filter by target ${displayName(filter.target)}`}
          onClick={() => set('target', null)}
        >
          Target: {displayName(filter.target)} ✕
        </Button>
      )}
      {Object.keys(filter).length > 0 && (
        <Button variant="subtle" onClick={() => onChange({})}>
          Clear filters
        </Button>
      )}
    </div>
  )
}

/** An API key, an operator or an IP address is not a member. */
const withSelected = (
  options: { value: string; label: string }[],
  selected: string | undefined,
  displayName: (id: string) => string,
) =>
  selected === undefined || options.some(({ value }) => value === selected)
    ? options
    : [...options, { value: selected, label: displayName(selected) }]
