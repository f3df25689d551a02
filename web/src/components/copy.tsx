// Copying text to the clipboard.
import { ActionIcon, Button, Code, Group } from '@mantine/core'
import { useTimeout } from '@mantine/hooks'
import { useState } from 'react'
import { CheckIcon, CopyIcon } from '../icons.tsx'

const SHOWN_MS = 2_000

async function copy(text: string): Promise<void> {
  // Without TLS, on any host but this one, browsers offer no clipboard; the old way still works there.
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  const give = (event: ClipboardEvent) => {
    event.preventDefault()
    event.clipboardData?.setData('text/plain', text)
  }
  document.addEventListener('copy', give, { once: true })
  document.execCommand('copy')
  document.removeEventListener('copy', give)
}

function useCopy(text: string) {
  const [copied, setCopied] = useState(false)
  const { start } = useTimeout(() => setCopied(false), SHOWN_MS)
  const run = () =>
    copy(text).then(
      () => {
        setCopied(true)
        start()
      },
      () => setCopied(false),
    )
  return { copied, run }
}

interface CopyProps {
  text: string
  /** What the button does, e.g. "Copy key". */
  name: string
}

export function CopyIconButton({ text, name }: CopyProps) {
  const { copied, run } = useCopy(text)
  return (
    <ActionIcon
      variant="subtle"
      color={copied ? 'green' : 'gray'}
      size="sm"
      aria-label={name}
      title={copied ? 'Copied' : name}
      onClick={run}
    >
      {copied ? <CheckIcon size={15} /> : <CopyIcon size={15} />}
    </ActionIcon>
  )
}

export function CopyTextButton({ text, name }: CopyProps) {
  const { copied, run } = useCopy(text)
  return (
    <Button
      variant="default"
      size="xs"
      leftSection={copied ? <CheckIcon size={15} /> : <CopyIcon size={15} />}
      onClick={run}
    >
      {copied ? 'Copied' : name}
    </Button>
  )
}

/** Text to be copied as it is, with its button. */
export function CopyBlock({ text, name, testId }: CopyProps & { testId?: string }) {
  return (
    <Group gap="xs" align="flex-start" wrap="nowrap">
      <Code block flex={1} miw={0} className="mono wrapped" data-testid={testId}>
        {text}
      </Code>
      <CopyIconButton text={text} name={name} />
    </Group>
  )
}
