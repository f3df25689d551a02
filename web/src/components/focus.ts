// Where the focus goes on when what had it is gone.

/** A dialog hands the focus back a moment after it closes. */
const HANDED_BACK_MS = 50

/** To the one that is wanted, if it is still there, or else to the heading of the page; not if something has the focus. */
export function restoreFocus(wanted: () => HTMLElement | null | undefined = () => null): void {
  setTimeout(() => {
    if (document.activeElement && document.activeElement !== document.body) return
    const element = wanted()
    const heading = document.querySelector<HTMLElement>('main h1')
    const next = element?.isConnected ? element : heading
    next?.focus()
  }, HANDED_BACK_MS)
}

/** Marks a button that removes its row, for those who look for the next one. */
export const removesRow = { 'data-removes-row': true } as const

/** The same button of the next row of its list, or of the one before. */
export function nextRowAction(button: HTMLElement): HTMLElement | null {
  const list = button.closest('ul, tbody')
  const all = [...(list?.querySelectorAll<HTMLElement>('[data-removes-row]') ?? [])]
  const here = all.indexOf(button)
  return all[here + 1] ?? all[here - 1] ?? null
}
