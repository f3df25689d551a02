// Toasts: say for a few seconds that an action succeeded or failed, visibly and in an ARIA live region.
import { CloseButton, Paper, Text } from '@mantine/core'
import { useEffect, useSyncExternalStore } from 'react'
import { CheckIcon, WarningIcon } from '../icons.tsx'
import classes from './toast.module.css'

/** While a dialog fades out, screen readers ignore everything outside it. */
const DIALOG_FADE_MS = 300
const VISIBLE_MS = 6_000

type Outcome = 'success' | 'failure'

let current: { id: number; text: string; outcome: Outcome } | null = null
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
export function showToast(text: string, outcome: Outcome = 'success'): void {
  // Cleared first: screen readers do not announce a live region whose text stays the same.
  clearToast()
  const id = lastId
  setTimeout(() => id === lastId && set({ id, text, outcome }), DIALOG_FADE_MS)
}

export function clearToast(): void {
  set(null)
  lastId += 1
}

const appearances = {
  success: { Icon: CheckIcon, color: 'var(--mantine-color-green-text)' },
  failure: { Icon: WarningIcon, color: 'var(--mantine-color-error)' },
} as const

export function Toasts() {
  const toast = useSyncExternalStore(subscribe, () => current)
  useEffect(() => {
    if (!toast) return
    const timer = setTimeout(() => set(null), VISIBLE_MS)
    return () => clearTimeout(timer)
  }, [toast])
  return (
    <div className={classes.region} role="status" aria-live="polite">
      {toast && <Toast key={toast.id} text={toast.text} outcome={toast.outcome} />}
    </div>
  )
}

function Toast({ text, outcome }: { text: string; outcome: Outcome }) {
  const { Icon, color } = appearances[outcome]
  return (
    <Paper className={classes.toast ?? ''} data-outcome={outcome} shadow="lg">
      <Text span c={color} lh={0}>
        <Icon size={20} />
      </Text>
      <Text size="sm" flex={1} miw={0}>
        {text}
      </Text>
      <CloseButton size="sm" aria-label="Dismiss" onClick={clearToast} />
    </Paper>
  )
}
