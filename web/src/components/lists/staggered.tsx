// Renders its children one per task, so that several charts do not block the main thread.
import { Children, type ReactNode, useEffect, useState } from 'react'

/** Charts draw a frame after they are measured; with a shorter interval two would draw together. */
const INTERVAL_MS = 80

interface StaggeredProps {
  children: ReactNode
  /** Shown for each child that is not rendered yet. */
  placeholder: ReactNode
}

export function Staggered({ children, placeholder }: StaggeredProps) {
  const [shown, setShown] = useState(0)
  const items = Children.toArray(children)
  useEffect(() => {
    if (shown >= items.length) return
    const timer = setTimeout(() => setShown(shown + 1), shown === 0 ? 0 : INTERVAL_MS)
    return () => clearTimeout(timer)
  }, [shown, items.length])
  return items.map((item, index) => (index < shown ? item : placeholder))
}
