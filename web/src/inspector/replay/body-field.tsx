// The body of a request as text that can be edited; one that is no text can be replaced only.
import { Button, Group, Skeleton, Stack, Text, Textarea } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { API, type Exchange } from '../../../../src/inspector/api.ts'
import { prettyJson } from '../../../../src/inspector/display/pretty-json.ts'
import { LoadError } from '../../components/lists/query-states.tsx'
import { send } from '../api.ts'

interface BodyFieldProps {
  exchange: Exchange
  /** Undefined: not edited. */
  value: string | undefined
  onChange: (body: string) => void
  /** The recorded body, if it is text. */
  onLoad: (body: string) => void
}

export function BodyField({ exchange, value, onChange, onLoad }: BodyFieldProps) {
  const { body } = exchange.request
  const query = useQuery({
    queryKey: ['request-body', exchange.id],
    queryFn: async ({ signal }) => {
      const response = await send(API.body(exchange.id, 'request'), { query: { decoded: true }, signal })
      return decodeText(await response.arrayBuffer())
    },
    enabled: body.bytes > 0,
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  })
  const recorded = body.bytes === 0 ? '' : query.data
  useEffect(() => {
    if (typeof recorded === 'string') onLoad(recorded)
  }, [recorded, onLoad])
  if (body.bytes > 0 && query.error)
    return <LoadError error={query.error} retry={query.refetch} isRetrying={query.isFetching} />
  if (recorded === undefined) return <Skeleton h={120} />
  const isEditable = recorded !== null && !body.cut && !body.viewCut
  if (!isEditable && value === undefined)
    return (
      <Stack gap={4} align="flex-start">
        <Text size="sm" fw={500}>
          Body
        </Text>
        <Text size="sm" c="dimmed">
          {body.cut
            ? 'The body was not recorded as a whole: replace it to replay the request.'
            : 'The body is not text that can be edited here. It is sent as recorded.'}
        </Text>
        <Button size="xs" variant="default" onClick={() => onChange('')}>
          Replace with text
        </Button>
      </Stack>
    )
  return <TextField text={value ?? recorded ?? ''} onChange={onChange} />
}

function TextField({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  const looksLikeJson = /^\s*[[{]/.test(text)
  const pretty = looksLikeJson ? prettyJson(text) : undefined
  return (
    <Stack gap={4}>
      <Textarea
        label="Body"
        autosize
        minRows={4}
        maxRows={18}
        spellCheck={false}
        classNames={{ input: 'mono' }}
        value={text}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
      {looksLikeJson && pretty !== text && (
        <Group gap="xs">
          <Button
            size="xs"
            variant="default"
            disabled={pretty === undefined}
            onClick={() => pretty !== undefined && onChange(pretty)}
          >
            Indent JSON
          </Button>
          {pretty === undefined && (
            <Text size="xs" c="dimmed" role="status">
              The body is not valid JSON, or too long.
            </Text>
          )}
        </Group>
      )}
    </Stack>
  )
}

/** Null if it is not UTF-8, or has zero bytes. */
function decodeText(bytes: ArrayBuffer): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    return text.includes('\0') ? null : text
  } catch {
    return null
  }
}
