// Toasts: confirm for a few seconds that an action succeeded, visibly and in an ARIA live region.
import { CloseButton, Paper, Text } from '@mantine/core'
import { useEffect, useSyncExternalStore } from 'react'
import { CheckIcon } from '../icons.tsx'
import classes from './toast.module.css'

/** While a dialog fades out, screen readers ignore everything outside it. */
const DIALOG_FADE_MS = 300
const VISIBLE_MS = 6_000

let current: { id: number; text: string } | null = null
let lastId = 0
const listeners = new Set<() => void>()

function set(toast: typeof current): void {
  current = toast
  for (const notify of listeners) notify()
}

function subscribe(notify: () => void): () => void {
  listeners.add(notify)
  return () => listeners.delete(notify)
}

/** Replaces the previous toast. */
export function showToast(text: string): void {
  // Cleared first: screen readers do not announce a live region whose text stays the same.
  set(null)
  lastId += 1
  const id = lastId
  setTimeout(() => id === lastId && set({ id, text }), DIALOG_FADE_MS)
}

export function Toasts() {
  const toast = useSyncExternalStore(subscribe, () => current)
  useEffect(() => {
    if (!toast) return
    const timer = setTimeout(() => set(null), VISIBLE_MS)
    return () => clearTimeout(timer)
  }, [toast])
  return (
    <div className={classes.region} role="status" aria-live="polite">
      {toast && (
        <Paper key={toast.id} className={classes.toast ?? ''} shadow="lg">
          <Text span c="var(--mantine-color-green-text)" lh={0}>
            <CheckIcon size={20} />
          </Text>
          <Text size="sm" flex={1} miw={0}>
            {toast.text}
          </Text>
          <CloseButton size="sm" aria-label="Dismiss" onClick={() => set(null)} />
        </Paper>
      )}
    </div>
  )
}
