// Keyboard shortcuts: keys without modifiers, outside of fields, menus and dialogs.
import { useEffect, useRef } from 'react'
import type { ExchangeSummary } from '../../../../src/inspector/api.ts'
import { select } from '../live/selection.ts'

export const shortcuts = [
  { keys: ['j', '↓'], action: 'Next request' },
  { keys: ['k', '↑'], action: 'Previous request' },
  { keys: ['/'], action: 'Search' },
  { keys: ['r'], action: 'Replay the selected request' },
  { keys: ['e'], action: 'Edit the selected request and replay it' },
  { keys: ['R'], action: 'Replay the latest request of the list' },
  { keys: ['c'], action: 'Compare the response with another one' },
  { keys: ['Esc'], action: 'Close the selected request' },
  { keys: ['?'], action: 'Show these shortcuts' },
] as const

const ENABLED = 'adit.inspector.shortcuts'
export const areEnabled = (): boolean => localStorage.getItem(ENABLED) !== 'off'
export const setEnabled = (isEnabled: boolean): void =>
  localStorage.setItem(ENABLED, isEnabled ? 'on' : 'off')

const TYPING = 'input, textarea, select, [role=menu], [role=dialog]'

type Actions = Readonly<Record<string, () => void>>

function isForPage(event: KeyboardEvent): boolean {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing)
    return false
  const { target, key } = event
  if (!(target instanceof Element) || target.closest(TYPING)) return false
  if (document.querySelector('[role=dialog]')) return false
  // Arrow keys scroll what has the focus.
  if (key.startsWith('Arrow') && target.closest('[tabindex="0"]')) return false
  return key === 'Escape' || key === '?' || areEnabled()
}

/** `repeats`: also while a key is held. */
export function useShortcuts(actions: Actions, repeats = false): void {
  const current = useRef(actions)
  useEffect(() => {
    current.current = actions
  })
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const action = Object.hasOwn(current.current, event.key) ? current.current[event.key] : undefined
      if (!action || (event.repeat && !repeats) || !isForPage(event)) return
      event.preventDefault()
      action()
    }
    addEventListener('keydown', onKeyDown)
    return () => removeEventListener('keydown', onKeyDown)
  }, [repeats])
}

/** Keys that move through the list. */
export function useListKeys(requests: readonly ExchangeSummary[], selected: string | undefined): void {
  const move = (step: number) => () => {
    const index = requests.findIndex(({ id }) => id === selected)
    const next = requests[index === -1 ? 0 : index + step]
    if (next) select(next.id)
  }
  useShortcuts({ j: move(1), k: move(-1), ArrowDown: move(1), ArrowUp: move(-1) }, true)
  useShortcuts({ '/': () => document.querySelector<HTMLElement>('input[type=search]')?.focus() })
}
