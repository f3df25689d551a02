// A body as text, image or hexadecimal lines. It comes from visitors or the local server: never as HTML.
import { Button, Group, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { API, type Body, type BodyView } from '../../../../src/inspector/api.ts'
import { CopyTextButton } from '../../components/copy.tsx'
import { ErrorAlert } from '../../components/lists/query-states.tsx'
import { downloadBlob } from '../../download.ts'
import { formatBytes } from '../../format.ts'
import { DownloadIcon } from '../../icons.tsx'
import { send } from '../api.ts'
import classes from './detail.module.css'

interface BodySectionProps {
  id: string
  of: 'request' | 'response'
  body: Body
}

/** A longer text takes the browser seconds to lay out. */
const TEXT_CHARS = 200_000

export function BodySection({ id, of, body }: BodySectionProps) {
  const download = useMutation({
    mutationFn: async () => {
      const response = await send(API.body(id, of), { query: { decoded: true } })
      downloadBlob(`${id}-${of}.${fileType(body.view)}`, await response.blob())
    },
  })
  const { view } = body
  if (view.type === 'empty')
    return (
      <div className={classes.body}>
        <Text size="sm" c="dimmed">
          {describeEmpty(body)}
        </Text>
      </div>
    )
  return (
    <div className={classes.body}>
      <Group justify="space-between" gap="xs" mb="xs">
        <Text size="xs" c="dimmed">
          {describeBody(body)}
        </Text>
        <Group gap="xs">
          {view.type === 'text' && <CopyTextButton text={view.text} name="Copy body" />}
          <Button
            size="xs"
            variant="default"
            leftSection={<DownloadIcon size={15} />}
            loading={download.isPending}
            onClick={() => download.mutate()}
          >
            Download
          </Button>
        </Group>
      </Group>
      <ErrorAlert error={download.error} />
      <Limits body={body} />
      <View view={view} label={of === 'request' ? 'Request body' : 'Response body'} />
    </div>
  )
}

function describeEmpty({ bytes, recordedBytes }: Body): string {
  if (bytes === 0) return 'No body.'
  return recordedBytes === 0 ? `${formatBytes(bytes)} were not recorded.` : 'Empty after decoding.'
}

const formatNames = { json: 'JSON', form: 'Form', text: 'Text' } as const

function describeBody({ view, bytes, decoded }: Body): string {
  const type =
    view.type === 'text'
      ? formatNames[view.format]
      : view.type === 'image'
        ? view.mediaType
        : 'Binary, in hexadecimal'
  return [type, formatBytes(bytes), decoded.length > 0 && `${decoded.join(', ')} decoded`]
    .filter(Boolean)
    .join(' · ')
}

const fileType = (view: BodyView): string => {
  if (view.type === 'image') return view.mediaType.replace('image/', '')
  if (view.type === 'text') return view.format === 'json' ? 'json' : 'txt'
  return 'bin'
}

/** What the view does not have. */
function Limits({ body: { bytes, recordedBytes, cut, decodeProblem, viewCut } }: { body: Body }) {
  const limits = [
    cut &&
      recordedBytes < bytes &&
      `Recorded: the first ${formatBytes(recordedBytes)} of ${formatBytes(bytes)}.`,
    cut && recordedBytes === bytes && 'The body is not complete.',
    decodeProblem,
    viewCut && 'Only the beginning is shown.',
  ].filter(Boolean)
  if (limits.length === 0) return null
  return (
    <Text size="sm" mb="xs" fw={500}>
      {limits.join(' ')}
    </Text>
  )
}

function View({ view, label }: { view: Exclude<BodyView, { type: 'empty' }>; label: string }) {
  if (view.type === 'image')
    return (
      <img
        className={classes.image}
        src={`data:${view.mediaType};base64,${view.base64}`}
        alt={`${label} (${view.mediaType})`}
      />
    )
  return <LongText text={view.text} format={view.type === 'hex' ? 'hex' : view.format} label={label} />
}

function LongText({ text, format, label }: { text: string; format: string; label: string }) {
  const [isWhole, setWhole] = useState(false)
  const isLong = !isWhole && text.length > TEXT_CHARS
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard */}
      <section className={classes.text} data-format={format} tabIndex={0} aria-label={label}>
        <pre>{isLong ? text.slice(0, TEXT_CHARS) : text}</pre>
      </section>
      {isLong && (
        <Button mt="xs" size="xs" variant="default" onClick={() => setWhole(true)}>
          Show all {formatBytes(text.length)}
        </Button>
      )}
    </>
  )
}
