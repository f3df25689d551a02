// Says to screen readers what was done, where the page itself shows it only by what is gone.
import { VisuallyHidden } from '@mantine/core'
import { useSyncExternalStore } from 'react'

/** A dialog that is still fading is all that a screen reader listens to. */
const FADED_MS = 300

let said = ''
const listeners = new Set<() => void>()

function say(text: string): void {
  said = text
  for (const tell of listeners) tell()
}

function subscribe(tell: () => void): () => void {
  listeners.add(tell)
  return () => listeners.delete(tell)
}

export function announce(text: string): void {
  // Emptied first: the same words twice would be no change, and not be read.
  say('')
  setTimeout(() => say(text), FADED_MS)
}

export function Announcements() {
  const text = useSyncExternalStore(subscribe, () => said)
  return (
    <VisuallyHidden role="status" aria-live="polite">
      {text}
    </VisuallyHidden>
  )
}
