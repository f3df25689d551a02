// Buttons that copy text to the clipboard and show that they did.
import { ActionIcon, Button, Code, Group } from '@mantine/core'
import { useTimeout } from '@mantine/hooks'
import { useState } from 'react'
import { CheckIcon, CopyIcon } from '../icons.tsx'
import classes from './copy.module.css'

const FEEDBACK_MS = 2_000

async function copy(text: string): Promise<void> {
  // Browsers offer navigator.clipboard only over HTTPS and on localhost; execCommand works everywhere.
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  const onCopy = (event: ClipboardEvent) => {
    event.preventDefault()
    event.clipboardData?.setData('text/plain', text)
  }
  document.addEventListener('copy', onCopy, { once: true })
  const copied = document.execCommand('copy')
  document.removeEventListener('copy', onCopy)
  if (!copied) throw new Error('Your browser blocked access to the clipboard.')
}

type CopyStatus = 'idle' | 'copied' | 'failed'

function useCopy(text: string) {
  const [status, setStatus] = useState<CopyStatus>('idle')
  const { start } = useTimeout(() => setStatus('idle'), FEEDBACK_MS)
  const run = () =>
    copy(text)
      .then(
        () => setStatus('copied'),
        () => setStatus('failed'),
      )
      .then(start)
  const icon = status === 'copied' ? <CheckIcon size={15} /> : <CopyIcon size={15} />
  return { status, icon, run }
}

const feedback: Record<CopyStatus, string> = {
  idle: '',
  copied: 'Copied',
  failed: 'Copy failed',
}

interface CopyProps {
  text: string
  /** Accessible name of the button, e.g. "Copy key". */
  name: string
}

export function CopyIconButton({ text, name }: CopyProps) {
  const { status, icon, run } = useCopy(text)
  return (
    <span className={classes.anchor}>
      <ActionIcon
        variant="subtle"
        color={status === 'copied' ? 'green' : 'gray'}
        size="sm"
        aria-label={name}
        title={name}
        onClick={run}
      >
        {icon}
      </ActionIcon>
      <span role="status" className={classes.bubble}>
        {feedback[status]}
      </span>
    </span>
  )
}

export function CopyTextButton({ text, name }: CopyProps) {
  const { status, icon, run } = useCopy(text)
  return (
    <Button variant="default" size="xs" leftSection={icon} onClick={run}>
      <span role="status">{feedback[status] || name}</span>
    </Button>
  )
}

/** Breaks lines at spaces only: browsers would also break after the hyphens of a flag. */
export function UnhyphenatedText({ text }: { text: string }) {
  return text.split(/(\s+)/).map((part, index) =>
    /\s/.test(part) ? (
      part
    ) : (
      <span key={index} className={classes.word}>
        {part}
      </span>
    ),
  )
}

/** A block of text, such as a command, with a button that copies it. */
export function CopyBlock({ text, name, testId }: CopyProps & { testId?: string }) {
  return (
    <Group gap="xs" align="flex-start" wrap="nowrap">
      <Code block flex={1} miw={0} ta="left" className="mono wrapped" data-testid={testId}>
        <UnhyphenatedText text={text} />
      </Code>
      <span className={classes.firstLine}>
        <CopyIconButton text={text} name={name} />
      </span>
    </Group>
  )
}
