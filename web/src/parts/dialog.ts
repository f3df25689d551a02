// A dialog about something. What it is about stays until the next one, so that nothing flickers as it closes.
import { useState } from 'react'

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
