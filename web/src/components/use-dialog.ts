// A dialog about something. What it is about stays until the next one, so that nothing flickers as it closes.
import { useRef, useState } from 'react'
import { nextRowAction } from './focus.ts'

export function useDialog<T>() {
  const [{ about, opened }, set] = useState<{ about: T | null; opened: boolean }>({
    about: null,
    opened: false,
  })
  return {
    about,
    opened,
    open: (about: T) => set({ about, opened: true }),
    close: () => set((before) => ({ ...before, opened: false })),
  }
}

/** A dialog that asks before a row goes, opened by a button of that row. */
export function useRemovalDialog<T>() {
  const dialog = useDialog<T>()
  const next = useRef<HTMLElement | null>(null)
  return {
    ...dialog,
    open: (about: T, button: HTMLElement) => {
      next.current = nextRowAction(button)
      dialog.open(about)
    },
    nextFocus: () => next.current,
  }
}
