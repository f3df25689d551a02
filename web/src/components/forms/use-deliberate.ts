// Protects buttons from double clickjacking: another site asks for a double click in a window above this one
// and closes that window at the first click, so that the second one lands here.
import { useEffect, useState } from 'react'

/** Longer than the time between the clicks of a double click. */
const PAUSE_MS = 1_000

/** Whether a click is meant for this page: the window has had the focus for a moment, without a click. */
export function useDeliberate(): boolean {
  const [isDeliberate, setDeliberate] = useState(false)
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const pause = () => {
      clearTimeout(timer)
      setDeliberate(false)
      timer = setTimeout(() => {
        timer = undefined
        setDeliberate(true)
      }, PAUSE_MS)
    }
    const extendPause = () => timer !== undefined && pause()
    pause()
    window.addEventListener('focus', pause)
    window.addEventListener('pointerdown', extendPause)
    return () => {
      clearTimeout(timer)
      window.removeEventListener('focus', pause)
      window.removeEventListener('pointerdown', extendPause)
    }
  }, [])
  return isDeliberate
}
