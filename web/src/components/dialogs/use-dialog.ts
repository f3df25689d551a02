// State of a dialog about one item. The item stays set while the dialog fades out, to keep its text.
import { useRef, useState } from 'react'
import { adjacentRemoveButton } from '../focus.ts'

export function useDialog<T>() {
  const [{ item, opened }, set] = useState<{ item: T | null; opened: boolean }>({
    item: null,
    opened: false,
  })
  return {
    item,
    opened,
    open: (item: T) => set({ item, opened: true }),
    close: () => set((state) => ({ ...state, opened: false })),
  }
}

/** A dialog that confirms the removal of a row, opened by a button in that row. */
export function useRemovalDialog<T>() {
  const dialog = useDialog<T>()
  const next = useRef<HTMLElement | null>(null)
  return {
    ...dialog,
    open: (item: T, button: HTMLElement) => {
      next.current = adjacentRemoveButton(button)
      dialog.open(item)
    },
    nextFocus: () => next.current,
  }
}
