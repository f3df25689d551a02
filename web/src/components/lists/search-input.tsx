// Search field above a list.
import { CloseButton, TextInput } from '@mantine/core'
import { SearchIcon } from '../../icons.tsx'

interface SearchInputProps {
  label: string
  placeholder: string
  value: string
  onChange: (value: string) => void
}

export function SearchInput({ label, placeholder, value, onChange }: SearchInputProps) {
  return (
    <TextInput
      type="search"
      aria-label={label}
      placeholder={placeholder}
      flex="1 1 220px"
      maw={420}
      autoComplete="off"
      leftSection={<SearchIcon size={16} />}
      rightSection={value && <CloseButton size="sm" aria-label="Clear search" onClick={() => onChange('')} />}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  )
}

/** Whether each word of the search is in one of the texts. */
export function matchesSearch(search: string, ...texts: (string | null)[]): boolean {
  const text = texts.join('\n').toLowerCase()
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}
