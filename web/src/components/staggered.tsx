// Shows its children one after the other, each in a task of its own: what is costly to draw must not hold up a click.
import { Children, type ReactNode, useEffect, useState } from 'react'

/** Charts measure their place before they draw, and draw in a later frame; sooner than that, two would draw at once. */
const APART_MS = 80

interface StaggeredProps {
  children: ReactNode
  /** What stands where one is still to come. */
  placeholder: ReactNode
}

export function Staggered({ children, placeholder }: StaggeredProps) {
  const [shown, setShown] = useState(0)
  const all = Children.toArray(children)
  useEffect(() => {
    if (shown >= all.length) return
    const timer = setTimeout(() => setShown(shown + 1), shown === 0 ? 0 : APART_MS)
    return () => clearTimeout(timer)
  }, [shown, all.length])
  return all.map((child, index) => (index < shown ? child : placeholder))
}
