// The headers of a request as fields.
import { ActionIcon, Button, Text, TextInput } from '@mantine/core'
import { CloseIcon, PlusIcon } from '../../icons.tsx'
import type { HeaderField } from './edit.ts'
import classes from './replay.module.css'

interface HeaderFieldsProps {
  headers: readonly HeaderField[]
  onChange: (headers: readonly HeaderField[]) => void
}

export function HeaderFields({ headers, onChange }: HeaderFieldsProps) {
  const replace = (key: number, change: (header: HeaderField) => HeaderField) =>
    onChange(headers.map((header) => (header.key === key ? change(header) : header)))
  const add = () => onChange([...headers, { key: nextKey(headers), name: '', value: '' }])
  return (
    <fieldset className={classes.headers}>
      <Text component="legend" size="sm" fw={600} p={0} mb={4}>
        Headers
      </Text>
      {headers.map((header, index) => (
        <div key={header.key} className={classes.header}>
          <TextInput
            size="xs"
            aria-label={`Name of header ${index + 1}`}
            maxLength={256}
            autoComplete="off"
            spellCheck={false}
            classNames={{ input: 'mono' }}
            value={header.name}
            onChange={({ currentTarget: { value: name } }) =>
              replace(header.key, (field) => ({ ...field, name }))
            }
          />
          <TextInput
            size="xs"
            className={classes.value ?? ''}
            aria-label={`Value of header ${index + 1}`}
            maxLength={16_384}
            autoComplete="off"
            spellCheck={false}
            classNames={{ input: 'mono' }}
            // What is typed replaces the masked value, which is sent as recorded otherwise.
            placeholder={header.recorded === undefined ? undefined : 'Masked: sent as recorded'}
            value={header.recorded === undefined ? header.value : ''}
            onChange={({ currentTarget: { value } }) =>
              replace(header.key, ({ key, name }) => ({ key, name, value }))
            }
          />
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={`Remove header ${header.name || index + 1}`}
            onClick={() => onChange(headers.filter(({ key }) => key !== header.key))}
          >
            <CloseIcon size={14} />
          </ActionIcon>
        </div>
      ))}
      <Button
        size="xs"
        variant="default"
        leftSection={<PlusIcon size={14} />}
        className={classes.add ?? ''}
        onClick={add}
      >
        Add header
      </Button>
      <Text size="xs" c="dimmed">
        Content-Length and other headers that frame the body are not listed: they are set to fit it.
      </Text>
    </fieldset>
  )
}

const nextKey = (headers: readonly HeaderField[]) => Math.max(-1, ...headers.map(({ key }) => key)) + 1
